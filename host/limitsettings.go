package host

import (
	"strconv"

	"obelus/host/internal/limits"
	"obelus/host/internal/setting"
)

func readLimits(s *Settings, v any) error {
	var names []string
	for _, f := range limits.Fields {
		names = append(names, f.Name)
	}
	return readTable(v, "limits", names, func(name string) string { return "limit " + strconv.Quote(name) }, func(i int, v any) error {
		read := setting.Size
		switch names[i] {
		case "depth":
			read = setting.Depth
		case "instructions":
			read = setting.Positive
		}
		n, err := read(v)
		if err == nil {
			*limits.Fields[i].Of(&s.Limits) = n
		}
		return err
	})
}
