package view

import "obelus/store"

// Lines returns the graph as lines of JSON: one for each call, then one for each edge.
func (d Graph) Lines() (lines []map[string]any) {
	for _, c := range d.Plan.Calls {
		line := map[string]any{"call": c.Position, "tool": c.Tool, "reads": texts(c.Reads()), "scopes": texts(c.Scopes()), "writes": ""}
		if c.Output != nil {
			line["writes"] = c.Output.Source
		}
		if c.Instance != "" {
			line["instance"] = c.Instance
		}
		if condition, ok := c.Issued["_if"]; ok {
			line["if"] = condition
		}
		if c.Schedule != nil {
			line[c.Schedule.Name[1:]] = c.Issued[c.Schedule.Name]
		}
		if len(c.After) > 0 {
			line["after"] = texts(c.After)
		}
		if d.Round != 0 {
			line["tick"] = d.Round
		}
		if r, ok := d.Ran[c.Position]; ok {
			line["status"], line["duration_ms"], line["wrote"] = r.Status, r.Duration, append([]string{}, r.Writes...)
			if r.Handled != nil {
				line["handled"] = r.Handled
			}
		}
		lines = append(lines, line)
	}
	for _, w := range d.Plan.Wires() {
		line := map[string]any{"from": w.From, "to": w.To, "path": w.Path.String(), "order": w.Order}
		if d.Round != 0 {
			line["tick"] = d.Round
		}
		lines = append(lines, line)
	}
	return lines
}

func texts(paths []store.Path) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = path.String()
	}
	return all
}
