package host

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"obelus/host/internal/luaerr"
	"obelus/host/internal/setting"
	"obelus/host/schedule"
)

// Schedule is a plan that a server runs again and again, under serve.schedules in obelus.lua.
type Schedule struct {
	Name  string
	Plan  string // its file
	Cron  string // the expression of When
	Zone  string // the zone of When; empty for UTC
	When  *schedule.Schedule
	Input map[string]any // of each run, beside the due time; nil for none
	schedule.Policy
}

// InputAt returns the input of the run that is due at a time: that of the schedule, and due.
func (s Schedule) InputAt(due time.Time) map[string]any {
	input := maps.Clone(s.Input)
	if input == nil {
		input = map[string]any{}
	}
	input["due"] = due.UTC().Format(time.RFC3339)
	return input
}

// readSchedules reads the schedules by their names.
func readSchedules(s *Serving, v any) error {
	return readNamed(v, "serve.schedules", "schedules", func(name, place string, v any) error {
		if err := schedule.CheckName(name); err != nil {
			return &settingError{nil, place + ": " + err.Error()}
		}
		given, err := readSchedule(name, place, v)
		s.Schedules = append(s.Schedules, given)
		return err
	})
}

func readSchedule(name, place string, v any) (s Schedule, err error) {
	s = Schedule{Name: name, Policy: schedule.Policy{Overlap: schedule.Skip, Catchup: schedule.DefaultCatchup}}
	fields := []string{"catchup", "cron", "input", "overlap", "plan", "zone"}
	err = readTable(v, place, fields, func(field string) string { return "setting " + place + "." + field }, func(i int, v any) (err error) {
		switch fields[i] {
		case "catchup":
			s.Catchup, err = setting.Duration(v)
		case "cron":
			s.Cron, err = setting.Text(v)
		case "input":
			s.Input, err = readScheduleInput(v)
		case "overlap":
			s.Overlap, err = readOverlap(v)
		case "plan":
			s.Plan, err = readPlanName(v)
		default:
			s.Zone, err = setting.Text(v)
		}
		return err
	})
	switch {
	case err != nil:
		return s, err
	case s.Plan == "":
		return s, &settingError{nil, place + ` needs a plan: plan = "plans/report.lua"`}
	case s.Cron == "":
		return s, &settingError{nil, place + ` needs times: cron = "0 3 * * *"`}
	}
	if s.When, err = schedule.Parse(s.Cron, s.Zone); err != nil {
		field := "cron"
		if _, wrong := schedule.Parse("@daily", s.Zone); wrong != nil {
			field = "zone"
		}
		return s, &settingError{[]string{field}, place + "." + field + ": " + err.Error()}
	}
	return s, nil
}

// readScheduleInput reads the input of a schedule, in which due is the server's.
func readScheduleInput(v any) (map[string]any, error) {
	input, ok := v.(map[string]any)
	if !ok {
		return nil, setting.WrongType("a table of values by name", v)
	}
	if _, ok := input["due"]; ok {
		return nil, fmt.Errorf("must not have due: the server sets it to the time at which the run is due")
	}
	return input, nil
}

func readOverlap(v any) (schedule.Overlap, error) {
	text, _ := v.(string)
	overlaps := schedule.Overlaps()
	if !slices.Contains(overlaps, text) {
		return "", fmt.Errorf(`%w%s`, setting.WrongType(`"skip", "queue" or "all"`, v), luaerr.DidYouMean(text, overlaps))
	}
	return schedule.Overlap(text), nil
}

// readPlanName reads the file of a plan that a server starts.
func readPlanName(v any) (string, error) {
	name, err := setting.Text(v)
	ext := path.Ext(name)
	if err == nil && (!strings.HasPrefix(name, "plans/") || path.Clean(name) != name || ext != ".lua" && ext != ".json") {
		err = setting.WrongType(`a file below plans/, such as "plans/report.lua"`, v)
	}
	return name, err
}

// readNamed reads a table of tables by names that the project chooses. what names them in errors.
func readNamed(v any, place, what string, read func(name, place string, v any) error) error {
	given, ok := v.(map[string]any)
	if !ok {
		return setting.WrongType("a table of "+what+" by name", v)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := place + "." + name
		err := read(name, at, given[name])
		inner, ok := err.(*settingError)
		if err != nil && !ok {
			inner = &settingError{nil, at + " " + err.Error()}
		}
		if err != nil {
			return &settingError{append([]string{name}, inner.keys...), inner.message}
		}
	}
	return nil
}

// SettingLine returns the line of obelus.lua to which the names of nested settings lead, as far as
// they do, and 1 without such a file.
func (g *Generation) SettingLine(names ...string) int {
	sc := g.project.Scripts[SettingsFile]
	if sc == nil {
		return 1
	}
	return keyLine(sc, names)
}
