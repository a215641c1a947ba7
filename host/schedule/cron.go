package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a zone is the same on a machine without a database of zones

	"github.com/robfig/cron/v3"

	"obelus/engine/lazyregexp"
	"obelus/engine/spell"
)

// Schedule is a cron expression in a time zone.
type Schedule struct {
	fields    *cron.SpecSchedule // its times in UTC stand for local times
	zone      *time.Location
	everyHour bool // it counts hours, and not times of day
}

// field is a field of a cron expression.
type field struct {
	name  string
	takes string   // the values that it takes
	last  int      // the largest of them
	round string   // in which each value comes once
	words []string // names that stand for values
}

var fields = []field{
	{"minute", "0 to 59", 59, "hour", nil},
	{"hour", "0 to 23", 23, "day", nil},
	{"day of the month", "1 to 31", 31, "month", nil},
	{"month", "1 to 12, or jan to dec", 12, "year", []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of the week", "0 to 7 from Sunday to Sunday, or sun to sat", 7, "week", []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// short are the words for whole expressions.
var short = []string{"@annually", "@daily", "@hourly", "@midnight", "@monthly", "@weekly", "@yearly"}

var (
	parser  = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	written = lazyregexp.New(`^[0-9A-Za-z*?,/-]+$`)
	word    = lazyregexp.New(`[A-Za-z]+`)
	// toSunday matches a part of the day of the week that ends with the 7.
	toSunday = lazyregexp.New(`^(?:([0-6])-)?7(?:/([1-7]))?$`)
	step     = lazyregexp.New(`/([0-9]+)`)
)

// anyValue is the bit of a field that is *. Such a field does not restrict the days by itself: a
// day is one of both fields, and else one of either.
const anyValue = 1 << 63

// Parse reads a cron expression, of five fields or a word such as @daily, for the time zone of a
// name such as "Europe/Berlin"; an empty one is UTC.
func Parse(expression, zone string) (*Schedule, error) {
	location, err := parseZone(zone)
	if err != nil {
		return nil, err
	}
	text, err := checkExpression(expression)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(text)
	if err != nil { // checkExpression has found none
		return nil, fmt.Errorf("%q is no cron expression: %w", expression, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%q is no cron expression", expression)
	}
	spec.Location = time.UTC
	// As in cron, a step leaves the field one that restricts nothing by itself.
	if parts := strings.Fields(text); len(parts) == len(fields) {
		for i, days := range map[int]*uint64{2: &spec.Dom, 4: &spec.Dow} {
			if strings.ContainsAny(parts[i], "*?") {
				*days |= anyValue
			}
		}
	}
	s := &Schedule{fields: spec, zone: location, everyHour: spec.Hour&anyValue != 0}
	if spec.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q is never due: no month that it names has such a day", expression)
	}
	return s, nil
}

// Local returns a time in the zone of the schedule.
func (s *Schedule) Local(t time.Time) time.Time { return t.In(s.zone) }

func parseZone(name string) (*time.Location, error) {
	location, err := time.LoadLocation(name)
	if err != nil || name == "Local" { // the same project runs on machines with different settings
		return nil, fmt.Errorf(`there is no time zone %q: it is a name like "Europe/Berlin", or "UTC"`, name)
	}
	return location, nil
}

// checkExpression returns an expression as the parser takes it.
func checkExpression(expression string) (string, error) {
	parts := strings.Fields(expression)
	switch {
	case len(parts) == 1 && strings.HasPrefix(parts[0], "@"):
		return checkShort(parts[0])
	case len(parts) > 0 && strings.HasPrefix(parts[0], "@"):
		return "", fmt.Errorf(`%q: a cron expression has five fields, "0 3 * * *", or is one of %s`, expression, strings.Join(short, ", "))
	case len(parts) != len(fields):
		return "", fmt.Errorf(`%q has %d fields, and a cron expression five: minute, hour, day of the month, month and day of the week, as in "0 3 * * *"`, expression, len(parts))
	}
	for i, part := range parts {
		if i == len(parts)-1 {
			part = sundays(part)
			parts[i] = part
		}
		if err := fields[i].check(i, part); err != nil {
			return "", fmt.Errorf("%q: %w", expression, err)
		}
	}
	return strings.Join(parts, " "), nil
}

func checkShort(expression string) (string, error) {
	if _, err := parser.Parse(expression); err == nil {
		return expression, nil
	}
	meant := ""
	if near := spell.Nearest(expression, short); near != "" {
		meant = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return "", fmt.Errorf("%q is none of %s%s", expression, strings.Join(short, ", "), meant)
}

// check returns an error for the text of field i.
func (f *field) check(i int, text string) error {
	for _, m := range step().FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[1]); err != nil || n > f.last {
			return fmt.Errorf("the %s %q has a step of %s, and the %s is %s: a step begins anew with each %s, so none can be longer",
				f.name, text, m[1], f.name, f.takes, f.round)
		}
	}
	if written().MatchString(text) && !hasEmptyPart(text) {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = text
		if _, err := parser.Parse(strings.Join(alone, " ")); err == nil {
			return nil
		}
	}
	for _, name := range word().FindAllString(text, -1) {
		if near := spell.Nearest(strings.ToLower(name), f.words); near != "" && !strings.EqualFold(near, name) {
			return fmt.Errorf("the %s %q is unknown (did you mean %q?)", f.name, name, near)
		}
	}
	return fmt.Errorf(`the %s is %s, and not %q: one value, *, a range like 1-5, a step like */2, or a list of them like 1,3`, f.name, f.takes, text)
}

// hasEmptyPart reports whether a part of a list is missing.
func hasEmptyPart(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			return true
		}
	}
	return false
}

// sundays returns the field for days of the week with 0 for Sunday where it is 7.
func sundays(text string) string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		m := toSunday().FindStringSubmatch(part)
		if m == nil {
			parts = append(parts, part)
			continue
		}
		from, step := 7, 1
		if m[1] != "" {
			from, _ = strconv.Atoi(m[1])
		}
		if m[2] != "" {
			step, _ = strconv.Atoi(m[2])
		}
		for day := from; day <= 7; day += step {
			parts = append(parts, strconv.Itoa(day%7))
		}
	}
	return strings.Join(parts, ",")
}
