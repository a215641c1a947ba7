package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t *testing.T, expression, zone string) *Schedule {
	t.Helper()
	s, err := Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// nextTimes returns the first due times after an instant, in the zone of the schedule.
func nextTimes(s *Schedule, after string, n int) (all []string) {
	for due := at(after); len(all) < n; {
		if due = s.Next(due); due.IsZero() {
			break
		}
		all = append(all, due.In(s.zone).Format("2006-01-02 Mon 15:04 -07:00"))
	}
	return all
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name, expression, zone, after string
		want                          []string
	}{
		{"each day", "0 3 * * *", "", "2026-11-26T03:00:00Z", []string{"2026-11-27 Fri 03:00 +00:00", "2026-11-28 Sat 03:00 +00:00"}},
		{"a word", "@daily", "Europe/Berlin", "2026-11-26T12:00:00Z", []string{"2026-11-27 Fri 00:00 +01:00"}},
		{"names", "30 9 * jan MON-wed", "", "2026-11-26T12:00:00Z", []string{"2027-01-04 Mon 09:30 +00:00", "2027-01-05 Tue 09:30 +00:00", "2027-01-06 Wed 09:30 +00:00", "2027-01-11 Mon 09:30 +00:00"}},
		{"Sunday as 7", "0 0 * * 7", "", "2026-11-26T12:00:00Z", []string{"2026-11-29 Sun 00:00 +00:00", "2026-12-06 Sun 00:00 +00:00"}},
		{"a range to Sunday", "0 0 * * 5-7", "", "2026-11-26T12:00:00Z", []string{"2026-11-27 Fri 00:00 +00:00", "2026-11-28 Sat 00:00 +00:00", "2026-11-29 Sun 00:00 +00:00", "2026-12-04 Fri 00:00 +00:00"}},
		{"either day", "0 0 13 * 5", "", "2026-11-26T12:00:00Z", []string{"2026-11-27 Fri 00:00 +00:00", "2026-12-04 Fri 00:00 +00:00", "2026-12-11 Fri 00:00 +00:00", "2026-12-13 Sun 00:00 +00:00"}},
		{"either day, in a list", "0 0 1,13 * 5,6", "", "2026-11-28T12:00:00Z", []string{"2026-12-01 Tue 00:00 +00:00", "2026-12-04 Fri 00:00 +00:00"}},
		{"both days, with a step of days", "0 9 */2 * 1", "", "2026-11-26T12:00:00Z", []string{"2026-12-07 Mon 09:00 +00:00", "2026-12-21 Mon 09:00 +00:00", "2027-01-11 Mon 09:00 +00:00"}},
		{"both days, with a step of weekdays", "0 9 1-7 * */7", "", "2026-11-26T12:00:00Z", []string{"2026-12-06 Sun 09:00 +00:00", "2027-01-03 Sun 09:00 +00:00"}},
		{"both days, with * in a list", "0 9 13,*/10 * 5", "", "2026-11-26T12:00:00Z", []string{"2026-12-11 Fri 09:00 +00:00", "2027-01-01 Fri 09:00 +00:00"}},
		{"the longest steps", "0 0 */31 */12 *", "", "2026-11-26T12:00:00Z", []string{"2027-01-01 Fri 00:00 +00:00", "2028-01-01 Sat 00:00 +00:00"}},
		{"beyond the table of the zone", "0 9 29 3 *", "Europe/Berlin", "2040-03-29T07:00:00Z", []string{"2041-03-29 Fri 09:00 +01:00", "2042-03-29 Sat 09:00 +01:00", "2043-03-29 Sun 09:00 +02:00", "2044-03-29 Tue 09:00 +02:00", "2045-03-29 Wed 09:00 +02:00"}},
		{"leap day", "0 0 29 2 *", "", "2026-11-26T12:00:00Z", []string{"2028-02-29 Tue 00:00 +00:00"}},
		{"a step", "*/20 * * * *", "Asia/Kathmandu", "2026-11-26T12:00:00Z", []string{"2026-11-26 Thu 18:00 +05:45", "2026-11-26 Thu 18:20 +05:45"}},

		{"left out", "30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", []string{"2026-03-28 Sat 02:30 +01:00", "2026-03-29 Sun 03:00 +02:00", "2026-03-30 Mon 02:30 +02:00"}},
		{"left out beside one that is not", "0,30 2,3 29 3 *", "Europe/Berlin", "2026-03-27T12:00:00Z", []string{"2026-03-29 Sun 03:00 +02:00", "2026-03-29 Sun 03:30 +02:00"}},
		{"twice", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25 Sun 02:30 +02:00", "2026-10-26 Mon 02:30 +01:00"}},
		{"twice, asked in between", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", []string{"2026-10-26 Mon 02:30 +01:00"}},
		{"twice, asked in the second hour", "0,30 2 * * *", "Europe/Berlin", "2026-10-25T01:15:00Z", []string{"2026-10-26 Mon 02:00 +01:00"}},
		{"every hour, forward", "15 * * * *", "America/New_York", "2026-03-08T05:30:00Z", []string{"2026-03-08 Sun 01:15 -05:00", "2026-03-08 Sun 03:15 -04:00", "2026-03-08 Sun 04:15 -04:00"}},
		{"every hour, back", "15 * * * *", "America/New_York", "2026-11-01T04:30:00Z", []string{"2026-11-01 Sun 01:15 -04:00", "2026-11-01 Sun 01:15 -05:00", "2026-11-01 Sun 02:15 -05:00"}},
		{"half an hour forward", "15 2 4 10 *", "Australia/Lord_Howe", "2026-10-01T00:00:00Z", []string{"2026-10-04 Sun 02:30 +11:00", "2027-10-04 Mon 02:15 +11:00"}},
		{"half an hour back", "45 1 * * *", "Australia/Lord_Howe", "2026-04-03T16:00:00Z", []string{"2026-04-05 Sun 01:45 +11:00", "2026-04-06 Mon 01:45 +10:30"}},
		{"a day left out", "0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", []string{"2011-12-29 Thu 12:00 -10:00", "2011-12-31 Sat 00:00 +14:00", "2011-12-31 Sat 12:00 +14:00"}},
		{"midnight left out", "0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", []string{"2026-04-24 Fri 01:00 +03:00", "2026-04-25 Sat 00:00 +03:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, nextTimes(mustParse(t, c.expression, c.zone), c.after, len(c.want))); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestNext_EveryMinute compares the due times of a thousand days with those found by looking at
// each minute of them.
func TestNext_EveryMinute(t *testing.T) {
	for zone, since := range map[string]string{
		"Europe/Berlin": "2025-01-01T00:00:00Z", "America/New_York": "2025-01-01T00:00:00Z", "Australia/Lord_Howe": "2025-01-01T00:00:00Z",
		"America/Santiago": "2040-09-01T00:00:00Z", "Europe/Dublin": "2044-10-01T00:00:00Z",
	} {
		from, days := at(since), 1000
		if from.Year() >= 2040 { // beyond the table of the zone
			days = 200
		}
		for _, expression := range []string{"30 2 * * *", "0 3 * * *", "15,45 1,2 * * 0", "*/10 */2 * * *", "59 1 1-15 * *", "20 * * * *"} {
			s := mustParse(t, expression, zone)
			want := dueMinutes(s, from, days)
			var got []time.Time
			for due := s.Next(from); due.Before(from.AddDate(0, 0, days)); due = s.Next(due) {
				got = append(got, due)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s in %s: %s", expression, zone, d)
			}
			if expression == "0 3 * * *" && len(got) != days {
				t.Errorf("%s in %s: %d runs in %d days", expression, zone, len(got), days)
			}
		}
	}
}

// dueMinutes looks at each minute of some days.
func dueMinutes(s *Schedule, from time.Time, days int) (due []time.Time) {
	has := func(field uint64, value int) bool { return field&(1<<value) != 0 }
	matches := func(clock time.Time) bool {
		f := s.fields
		day, weekday := has(f.Dom, clock.Day()), has(f.Dow, int(clock.Weekday()))
		if f.Dom&anyValue == 0 && f.Dow&anyValue == 0 {
			day = day || weekday
		}
		return has(f.Minute, clock.Minute()) && has(f.Hour, clock.Hour()) && has(f.Month, int(clock.Month())) && day && (weekday || f.Dow&anyValue == 0 && f.Dom&anyValue == 0)
	}
	clockOf := func(at time.Time) time.Time {
		_, offset := at.In(s.zone).Zone()
		return at.Add(time.Duration(offset) * time.Second)
	}
	last := clockOf(from)
	latest := last
	for at := from.Add(time.Minute); at.Before(from.AddDate(0, 0, days)); at = at.Add(time.Minute) {
		clock := clockOf(at)
		is := matches(clock) && (s.everyHour || clock.After(latest))
		for left := last.Add(time.Minute); left.Before(clock) && !s.everyHour; left = left.Add(time.Minute) {
			is = is || matches(left) && left.After(latest)
		}
		if is {
			due = append(due, at)
		}
		last = clock
		if clock.After(latest) {
			latest = clock
		}
	}
	return due
}

func TestParse_Errors(t *testing.T) {
	for _, c := range []struct{ expression, zone, want string }{
		{"0 3 * *", "", `has 4 fields, and a cron expression five`},
		{"0 0 3 * * *", "", `has 6 fields`},
		{"", "", `has 0 fields`},
		{"*/90 * * * *", "", `the minute "*/90" has a step of 90, and the minute is 0 to 59: a step begins anew with each hour, so none can be longer`},
		{"0 8-18/24 * * *", "", `the hour "8-18/24" has a step of 24`},
		{"0 0 * 1,3/13 *", "", `the month "1,3/13" has a step of 13`},
		{"0 0 * * 1/99999999999999999999", "", `the day of the week "1/99999999999999999999" has a step of`},
		{"61 3 * * *", "", `the minute is 0 to 59, and not "61"`},
		{"0 24 * * *", "", `the hour is 0 to 23, and not "24"`},
		{"0 3 0 * *", "", `the day of the month is 1 to 31, and not "0"`},
		{"0 3 * jna *", "", `the month "jna" is unknown (did you mean "jan"?)`},
		{"0 3 * * mno", "", `the day of the week "mno" is unknown (did you mean "mon"?)`},
		{"0 3 * * fri-sun", "", `the day of the week is 0 to 7`},
		{"0 3 * * 1,,2", "", `not "1,,2"`},
		{"0 3 5-1 * *", "", `not "5-1"`},
		{"*/0 3 * * *", "", `not "*/0"`},
		{"TZ=UTC 3 * * *", "", `not "TZ=UTC"`},
		{"CRON_TZ=UTC 0 3 * * *", "", `has 6 fields`},
		{"0 3 L * *", "", `the day of the month is`},
		{"@dayly", "", `"@dayly" is none of @annually, @daily, @hourly, @midnight, @monthly, @weekly, @yearly (did you mean "@daily"?)`},
		{"@every 1h", "", `has five fields`},
		{"0 0 30 2 *", "", `is never due`},
		{"0 3 * * *", "Europe/Berln", `there is no time zone "Europe/Berln"`},
		{"0 3 * * *", "Local", `there is no time zone "Local"`},
		{"0 3 * * *", "../../etc/passwd", `there is no time zone`},
	} {
		_, err := Parse(c.expression, c.zone)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in %q: %v, and not %q", c.expression, c.zone, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0 3 * * *", "@daily", "TZ=", "*/5 1-3,7 ? jan 5-7/2", "1/99999999999999999999 * * * *"} {
		f.Add(text, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, expression, zone string) {
		s, err := Parse(expression, zone)
		if err != nil {
			return
		}
		due := at("2026-03-01T00:00:00Z")
		for range 3 {
			next := s.Next(due)
			if !next.IsZero() && !next.After(due) {
				t.Fatalf("%q in %q: %s is not after %s", expression, zone, next, due)
			}
			if due = next; due.IsZero() {
				return
			}
		}
	})
}

func TestRunName(t *testing.T) {
	due := at("2026-11-26T03:00:00+01:00")
	name := RunName("nightly", due)
	if name != "nightly-20261126T020000Z" {
		t.Error(name)
	}
	if got, ok := DueOf("nightly", name); !ok || !got.Equal(due) {
		t.Error(got, ok)
	}
	for _, other := range []string{"nightly", "nightly-", "nightly-x", "nightly-full-20261126T020000Z", "nightly-20261326T020000Z", "nightly-20261126T020000Z.1.2"} {
		if got, ok := DueOf("nightly", other); ok {
			t.Errorf("%s is taken for the run of %s", other, got)
		}
	}
	longest := strings.Repeat("n", maxName)
	if err := CheckName(longest); err != nil || len(RunName(longest, due)) != 64 {
		t.Error(err, len(RunName(longest, due)))
	}
	for _, wrong := range []string{"", longest + "n", "a.b", "1st", "a b", "ä"} {
		if CheckName(wrong) == nil {
			t.Errorf("%q is taken for a name", wrong)
		}
	}
}

// decided is a decision in short: the due time that starts, and the skipped ones by reason.
func decided(d Decision) string {
	clock := func(t time.Time) string { return t.Format("15:04") }
	var parts []string
	for _, k := range d.Skipped {
		text := clock(k.From)
		if k.Count > 1 {
			text += "-" + clock(k.Until)
		}
		parts = append(parts, string(k.Reason)+" "+text)
	}
	if !d.Start.IsZero() {
		parts = append(parts, "start "+clock(d.Start))
	}
	if d.Waits {
		parts = append(parts, "waits")
	}
	return strings.Join(parts, ", ")
}

func TestDecide(t *testing.T) {
	hourly := mustParse(t, "0 * * * *", "")
	clock := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		return at("2026-11-26T" + text + ":00Z")
	}
	for _, c := range []struct {
		name       string
		overlap    Overlap
		catchup    time.Duration
		known      string
		unfinished bool
		ended      string
		now        string
		want       string
	}{
		{"nothing is due", Skip, time.Hour, "09:00", false, "09:01", "09:59", ""},
		{"on time", Skip, time.Hour, "09:00", false, "09:01", "10:00", "start 10:00"},
		{"never with the past", Skip, 24 * time.Hour, "09:30", false, "", "09:45", ""},
		{"missed by less than the catchup", Skip, time.Hour, "09:00", false, "09:01", "10:59", "start 10:00"},
		{"the newest missed one", Skip, time.Hour, "05:00", false, "05:01", "10:20", "missed 06:00-09:00, start 10:00"},
		{"missed by more than the catchup", Skip, 10 * time.Minute, "05:00", false, "05:01", "10:20", "missed 06:00-10:00"},
		{"without catchup, on time", Skip, 0, "09:00", false, "09:01", "10:01", "start 10:00"},
		{"without catchup, late", Skip, 0, "09:00", false, "09:01", "10:02", "missed 10:00"},

		{"skip", Skip, time.Hour, "09:00", true, "", "10:00", "overlapping 10:00"},
		{"skip, noticed later", Skip, time.Hour, "09:00", false, "10:05", "10:06", "overlapping 10:00"},
		{"skip, and the next is due", Skip, time.Hour, "09:00", false, "10:05", "11:00", "overlapping 10:00, start 11:00"},

		{"queue waits", Queue, time.Hour, "09:00", true, "", "12:30", "waits"},
		{"queue without anything due", Queue, time.Hour, "09:00", true, "", "09:30", ""},
		{"queue goes on in order", Queue, time.Hour, "09:00", false, "12:30", "12:30", "start 10:00"},
		{"queue goes on long after", Queue, time.Hour, "09:00", false, "10:30", "12:30", "missed 10:00-11:00, start 12:00"},
		{"queue without anything waiting", Queue, time.Hour, "09:00", false, "09:30", "12:30", "missed 10:00-11:00, start 12:00"},

		{"all", All, time.Hour, "09:00", true, "", "10:00", "start 10:00"},
		{"all, missed", All, time.Hour, "09:00", true, "", "12:10", "missed 10:00-11:00, start 12:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := decided(hourly.Decide(Policy{c.overlap, c.catchup}, Status{clock(c.known), c.unfinished, clock(c.ended)}, clock(c.now)))
			if got != c.want {
				t.Errorf("%q, and not %q", got, c.want)
			}
		})
	}
}

// TestDecide_Catchup holds that each due time of a thousand days, during which a server is down
// most of the time, is started or skipped, and none twice.
func TestDecide_Catchup(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		for _, overlap := range []Overlap{Skip, Queue, All} {
			s := mustParse(t, "30 1-3 * * *", zone)
			from := at("2025-01-01T00:00:00Z")
			var dealt, all []time.Time
			st := Status{Known: from}
			for now := from; now.Before(from.AddDate(0, 0, 1000)); now = now.Add(7 * time.Hour) {
				for { // as the server does, until nothing is due
					d := s.Decide(Policy{overlap, 2 * time.Hour}, st, now)
					for _, k := range d.Skipped {
						for due := s.Next(k.From.Add(-1)); !due.After(k.Until); due = s.Next(due) {
							dealt = append(dealt, due)
						}
						st.Known = k.Until
					}
					if d.Start.IsZero() {
						break
					}
					if now.Sub(d.Start) > 2*time.Hour {
						t.Fatalf("%s: %s starts at %s", zone, d.Start, now)
					}
					dealt = append(dealt, d.Start)
					st.Known, st.Ended = d.Start, d.Start.Add(time.Minute)
				}
			}
			for due := s.Next(from); !due.After(st.Known); due = s.Next(due) {
				all = append(all, due)
			}
			slices.SortFunc(dealt, time.Time.Compare)
			if d := cmp.Diff(all, dealt); d != "" || len(all) < 2990 {
				t.Errorf("%s, %s: %d due times: %s", zone, overlap, len(all), d)
			}
		}
	}
}

func TestDecide_VeryManyMissed(t *testing.T) {
	s := mustParse(t, "* * * * *", "")
	began := time.Now()
	d := s.Decide(Policy{Skip, time.Hour}, Status{Known: at("2016-01-01T00:00:00Z")}, at("2026-01-01T00:00:30Z"))
	if !d.Start.Equal(at("2026-01-01T00:00:00Z")) || len(d.Skipped) != 1 || d.Skipped[0].Count != maxDue {
		t.Errorf("%+v", d)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("ten years took %s", took)
	}
}
