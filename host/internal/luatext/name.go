package luatext

// IsWord reports whether a byte may be part of a name.
func IsWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// IsName reports whether a key may stand after a dot.
func IsName(key string) bool {
	if key == "" || key[0] >= '0' && key[0] <= '9' {
		return false
	}
	for i := range len(key) {
		if !IsWord(key[i]) {
			return false
		}
	}
	return true
}

// Keywords are the words of Lua that are no names.
var Keywords = []string{
	"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or", "repeat",
	"return", "then", "true", "until", "while",
}
