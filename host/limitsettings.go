package host

import "strconv"

func readLimits(s *Settings, v any) error {
	var names []string
	for _, f := range limitFields {
		names = append(names, f.name)
	}
	return readTable(v, "limits", names, func(name string) string { return "limit " + strconv.Quote(name) }, func(i int, v any) error {
		read := asSize
		switch names[i] {
		case "depth":
			read = asDepth
		case "instructions":
			read = asPositive
		}
		n, err := read(v)
		if err == nil {
			*limitFields[i].of(&s.Limits) = n
		}
		return err
	})
}
