package modeltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
)

// Modelfile is what makes the file of [Monkey], under the name monkey.gguf, a model of Ollama.
const Modelfile = "FROM ./monkey.gguf\nPARAMETER num_thread 1\nPARAMETER num_ctx 4096\nTEMPLATE \"\"\"{{ .System }} {{ .Prompt }}\"\"\"\n"

// The size of the monkey's layers.
const (
	monkeyWidth = 64
	monkeyHeads = 4
)

// Monkey writes a model file (GGUF) of about 300 KB, for servers such as Ollama and llama.cpp. The
// model knows nothing: each token depends on the one before and on chance. Held to a schema it
// writes anything that the schema allows, in few words. To get the same text again, ask with the
// same seed; a temperature of 1.3 suits it.
func Monkey(w io.Writer) error {
	tokens := monkeyTokens()
	chance := rand.New(rand.NewPCG(7, 7))
	var head, data bytes.Buffer
	count := uint64(0)
	tensor := func(name string, rows, columns int, fill func(row, column int) float32) {
		count++
		writeText(&head, name)
		dimensions := []uint64{uint64(columns), uint64(rows)}
		if rows == 0 { // a vector
			dimensions, rows = dimensions[:1], 1
		}
		write(&head, uint32(len(dimensions)), dimensions, uint32(0), uint64(data.Len())) // 32-bit floats
		for row := range rows {
			for column := range columns {
				write(&data, fill(row, column))
			}
		}
	}
	zero := func(int, int) float32 { return 0 }
	one := func(int, int) float32 { return 1 }
	// The state is the token's embedding, for all layers between add nothing.
	tensor("token_embd.weight", len(tokens), monkeyWidth, func(_, column int) float32 {
		if column == 0 {
			return 1
		}
		return float32(chance.NormFloat64())
	})
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"} {
		tensor("blk.0."+name+".weight", monkeyWidth, monkeyWidth, zero)
	}
	for _, name := range []string{"blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"} {
		tensor(name+".weight", 0, monkeyWidth, one)
	}
	tensor("output.weight", len(tokens), monkeyWidth, func(row, column int) float32 {
		if column == 0 {
			return 0.6 * tokens[row].bias
		}
		return 0.15 * float32(chance.NormFloat64())
	})
	return monkeyFile(w, tokens, count, &head, &data)
}

// monkeyFile writes the parts of the file: the header, the metadata, and the tensors.
func monkeyFile(w io.Writer, tokens []monkeyToken, tensors uint64, head, data *bytes.Buffer) error {
	var meta bytes.Buffer
	count := uint64(0)
	put := func(key string, kind uint32, v any) {
		count++
		writeText(&meta, key)
		write(&meta, kind)
		if text, ok := v.(string); ok {
			writeText(&meta, text)
			return
		}
		write(&meta, v)
	}
	const kindUint32, kindInt32, kindFloat32, kindBool, kindText, kindArray = 4, 5, 6, 7, 8, 9
	put("general.architecture", kindText, "llama")
	put("general.name", kindText, "monkey")
	numbers := map[string]uint32{
		"context_length": 4096, "embedding_length": monkeyWidth, "block_count": 1, "feed_forward_length": monkeyWidth,
		"attention.head_count": monkeyHeads, "attention.head_count_kv": monkeyHeads, "rope.dimension_count": monkeyWidth / monkeyHeads,
		"vocab_size": uint32(len(tokens)),
	}
	for _, key := range slices.Sorted(maps.Keys(numbers)) { // the file is the same each time
		put("llama."+key, kindUint32, numbers[key])
	}
	put("llama.attention.layer_norm_rms_epsilon", kindFloat32, float32(1e-5))
	put("tokenizer.ggml.model", kindText, "llama")
	var texts bytes.Buffer
	scores, kinds := make([]float32, len(tokens)), make([]int32, len(tokens))
	for i, t := range tokens {
		writeText(&texts, t.text)
		scores[i], kinds[i] = -float32(i), t.kind
	}
	n := uint64(len(tokens))
	put("tokenizer.ggml.tokens", kindArray, uint32(kindText))
	write(&meta, n, texts.Bytes())
	put("tokenizer.ggml.scores", kindArray, uint32(kindFloat32))
	write(&meta, n, scores)
	put("tokenizer.ggml.token_type", kindArray, uint32(kindInt32))
	write(&meta, n, kinds)
	for id, key := range []string{"unknown", "bos", "eos"} {
		put("tokenizer.ggml."+key+"_token_id", kindUint32, uint32(id))
	}
	put("tokenizer.ggml.add_bos_token", kindBool, true)
	put("tokenizer.ggml.add_space_prefix", kindBool, false)

	var file bytes.Buffer
	file.WriteString("GGUF")
	write(&file, uint32(3), tensors, count, meta.Bytes(), head.Bytes())
	for file.Len()%32 != 0 {
		file.WriteByte(0)
	}
	file.Write(data.Bytes())
	_, err := w.Write(file.Bytes())
	return err
}

// monkeyToken is a token with how likely it is: the logarithm of a weight.
type monkeyToken struct {
	text string
	kind int32
	bias float32
}

// monkeyTokens returns the tokens of the monkey: ASCII characters, and rarely any byte.
func monkeyTokens() []monkeyToken {
	const normal, unknown, control, raw = 1, 2, 3, 6
	tokens := []monkeyToken{{"<unk>", unknown, -60}, {"<s>", control, -60}, {"</s>", control, 0}}
	for b := range 256 {
		bias := float32(-20)
		if b == '\n' {
			bias = -60
		}
		tokens = append(tokens, monkeyToken{fmt.Sprintf("<0x%02X>", b), raw, bias})
	}
	likely := map[rune]float32{'"': 5, '}': 3, '{': 3, ',': 2, ']': 1}
	for c := rune(33); c <= 126; c++ {
		tokens = append(tokens, monkeyToken{string(c), normal, likely[c]})
	}
	return append(tokens, monkeyToken{"▁", normal, -8})
}

// writeText writes a text as GGUF has it: its length, then its bytes.
func writeText(b *bytes.Buffer, text string) {
	write(b, uint64(len(text)))
	b.WriteString(text)
}

// write writes values of fixed size in the order of bytes that GGUF has.
func write(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic("modeltest: " + err.Error()) // its values have fixed sizes
		}
	}
}
