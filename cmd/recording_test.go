package cmd

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"obelus/host/model/modeltest"
)

var recordExamples = flag.Bool("record", false, "record the cassettes of the examples anew, by the answers in testdata/answers")

// written is an answer of a model that a person wrote, in testdata/answers.
type written struct {
	Has     string `json:"has"`     // what stands in the block of the call, or in the prompt for a plan
	Answers []any  `json:"answers"` // the second one is for where the first one was not taken
	Failure string `json:"failure"` // in place of answers: why there is none
}

// TestExamples_Record records the cassettes of the examples: a provider of models on this machine
// answers their tests by what people wrote. It runs with -record alone:
//
//	go test ./cmd -run TestExamples_Record -record
func TestExamples_Record(t *testing.T) {
	if !*recordExamples {
		t.Skip("it runs with -record alone")
	}
	files, err := filepath.Glob("testdata/answers/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		example := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(example, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var all []written
			if err := json.Unmarshal(text, &all); err != nil {
				t.Fatal(file, err)
			}
			server := modeltest.NewServer(t)
			server.Answer = func(r *modeltest.Request) modeltest.Reply {
				answer, err := answerOf(all, r.Prompt)
				if err != nil {
					t.Errorf("%v in\n%s", err, r.Prompt)
				}
				return modeltest.Reply{Value: answer}
			}
			dir := copied(t, example)
			settings := filepath.Join(dir, "obelus.lua")
			if text, err = os.ReadFile(settings); err != nil {
				t.Fatal(err)
			}
			local := strings.Replace(string(text), `provider = "openai",`, fmt.Sprintf(`provider = "openai", url = %q,`, server.URL), 1)
			if err := os.WriteFile(settings, []byte(local), 0o600); err != nil {
				t.Fatal(err)
			}
			obelusOutput(t, exitDone, "test", "-C", dir, "--record=all")
			obelusOutput(t, exitDone, "test", "-C", dir, "--prune")
			cassette := filepath.Join("tests", "cassettes", example+".json")
			if text, err = os.ReadFile(filepath.Join(dir, cassette)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(examples+example, cassette), text, 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// callHeading begins the block of a call, goesTo its line with alternatives.
var (
	callHeading = regexp.MustCompile(`(?m)^## Call (\S+) `)
	goesTo      = regexp.MustCompile(`(?m)^Goes to: (.*)$`)
)

// answerOf returns what people wrote to be the answer to a prompt.
func answerOf(all []written, prompt string) (any, error) {
	headings := callHeading.FindAllStringSubmatchIndex(prompt, -1)
	if len(headings) == 0 { // it is for a plan
		return writtenFor(all, prompt, false)
	}
	answer := map[string]any{}
	for i, heading := range headings {
		end := len(prompt)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		block, id := prompt[heading[0]:end], prompt[heading[2]:heading[3]]
		value, err := writtenFor(all, block, strings.Contains(block, "## Your last answer to "+id))
		if err != nil {
			return nil, err
		}
		answer[id] = value
	}
	return answer, nil
}

// writtenFor returns the first of all that stands for a block, as the block asks for it.
func writtenFor(all []written, block string, again bool) (any, error) {
	for _, w := range all {
		if !strings.Contains(block, w.Has) {
			continue
		}
		var alternatives []string
		if line := goesTo.FindStringSubmatch(block); line != nil {
			alternatives = strings.Split(line[1], " or ")
		}
		if w.Failure != "" {
			return map[string]any{"to": alternatives[len(alternatives)-1], "message": w.Failure}, nil
		}
		value := w.Answers[0]
		if again {
			value = w.Answers[len(w.Answers)-1]
		}
		if len(alternatives) > 0 {
			value = map[string]any{"to": alternatives[0], "value": value}
		}
		return value, nil
	}
	return nil, fmt.Errorf("nobody wrote an answer")
}
