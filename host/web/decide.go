package web

import (
	"encoding/json"
	"net/http"
	"strings"

	"obelus/engine/journal"
	"obelus/store"
)

// approveBody is the body of POST …/calls/{call}/approve.
type approveBody struct {
	Set json.RawMessage `json:"set" jsonschema:"Arguments by name, each of which replaces the present one; dots lead inside."`
	By  string          `json:"by" jsonschema:"The name that the client gives itself; recorded as claimed."`
}

func (s *Server) postApprove(w http.ResponseWriter, r *http.Request) error {
	var asked approveBody
	if err := read(r, &asked); err != nil {
		return err
	}
	set, err := readSet(asked.Set)
	if err != nil {
		return err
	}
	return s.decide(w, r, asked.By, func(record journal.Record, d *journal.Decision) (err error) {
		if d.Arguments, err = record.Hold.With(set); err != nil {
			err = &journal.CorrectionError{Call: record.Call, Err: err}
		}
		return err
	})
}

// readSet reads corrections. It returns nil for none.
func readSet(text json.RawMessage) (map[string]any, error) {
	return readByName("set", "arguments by name", text)
}

// readByName reads the object in a field. It returns nil if the field is left out.
func readByName(field, what string, text json.RawMessage) (map[string]any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	v, err := store.DecodeJSON(text)
	if err != nil {
		return nil, wrong("%s: %s", field, err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, wrong("%s must be an object of %s, not %s", field, what, store.Describe(v))
	}
	return object, nil
}

// rejectBody is the body of POST …/calls/{call}/reject.
type rejectBody struct {
	Reason string `json:"reason" jsonschema:"The text with which the call fails."`
	By     string `json:"by" jsonschema:"The name that the client gives itself; recorded as claimed."`
}

func (s *Server) postReject(w http.ResponseWriter, r *http.Request) error {
	var asked rejectBody
	if err := read(r, &asked); err != nil {
		return err
	}
	if strings.TrimSpace(asked.Reason) == "" {
		return wrong(`give a reason, with which the call fails: {"reason": "no receipt"}`)
	}
	return s.decide(w, r, asked.By, func(_ journal.Record, d *journal.Decision) error {
		d.Reject, d.Reason = true, asked.Reason
		return nil
	})
}

// decide records a decision about a held call, and goes on with its run.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, by string, how func(journal.Record, *journal.Decision) error) error {
	name, err := s.existingContext(r)
	if err != nil {
		return err
	}
	record, err := journal.In(s.log, name).HeldCall(r.Context(), r.PathValue("call"))
	if err != nil {
		return err
	}
	d := journal.Decision{Context: record.Context, Call: record.Call}
	if d.Who, err = decider(r, by); err != nil {
		return err
	}
	if err := how(record, &d); err != nil {
		return err
	}
	if err := s.supervisor.Decide(r.Context(), d); err != nil {
		return err
	}
	return s.sendDecision(w, r, d.Context, map[string]any{"context": d.Context, "call": d.Call, "decision": d.Word()})
}

// sendDecision answers with a decision that is in the log. It adds that its run is cancelled, since
// then the run does not go on by itself.
func (s *Server) sendDecision(w http.ResponseWriter, r *http.Request, name string, decision map[string]any) error {
	if root, err := journal.In(s.log, name).Root(r.Context()); err == nil {
		last, err := journal.In(s.log, root).CurrentRun(r.Context())
		if err == nil && last.Unwanted() {
			decision["status"] = last.Status
		}
	}
	return write(w, http.StatusOK, decision)
}

// approvePlanBody is the body of POST …/approve.
type approvePlanBody struct {
	Hash    string          `json:"hash" jsonschema:"The hash of the plan, as the list of approvals has it."`
	Set     json.RawMessage `json:"set" jsonschema:"Corrections by call and place in it, such as 1.2.amount."`
	Without []string        `json:"without" jsonschema:"Calls that are dropped, such as 1.3."`
	Preview bool            `json:"preview" jsonschema:"Decide nothing, and say what would then wait or read what is there."`
	By      string          `json:"by" jsonschema:"The name that the client gives itself; recorded as claimed."`
}

func (s *Server) postApprovePlan(w http.ResponseWriter, r *http.Request) error {
	var asked approvePlanBody
	if err := read(r, &asked); err != nil {
		return err
	}
	set, err := readSet(asked.Set)
	if err != nil {
		return err
	}
	return s.decidePlan(w, r, journal.PlanDecision{Hash: asked.Hash, Set: set, Without: asked.Without}, asked.By, asked.Preview)
}

// rejectPlanBody is the body of POST …/reject.
type rejectPlanBody struct {
	Hash   string `json:"hash" jsonschema:"The hash of the plan, as the list of approvals has it."`
	Reason string `json:"reason" jsonschema:"Why: its planner is told it, or the run fails with it."`
	By     string `json:"by" jsonschema:"The name that the client gives itself; recorded as claimed."`
}

func (s *Server) postRejectPlan(w http.ResponseWriter, r *http.Request) error {
	var asked rejectPlanBody
	if err := read(r, &asked); err != nil {
		return err
	}
	if strings.TrimSpace(asked.Reason) == "" {
		return wrong(`give a reason, which the planner is told: {"hash": "…", "reason": "too dear"}`)
	}
	return s.decidePlan(w, r, journal.PlanDecision{Hash: asked.Hash, Reject: true, Reason: asked.Reason}, asked.By, false)
}

// decidePlan records a decision about a plan that waits, and goes on with its run. The plan is the
// one of the context, or of the delegate in it whose plan waits.
func (s *Server) decidePlan(w http.ResponseWriter, r *http.Request, d journal.PlanDecision, by string, isPreview bool) error {
	name, err := s.existingContext(r)
	if err != nil {
		return err
	}
	if d.Hash == "" {
		return wrong(`say which plan: {"hash": "…"}, as GET /v1/contexts/%s/approvals has it`, name)
	}
	if d.Context = name; isPreview {
		effects, err := s.supervisor.PreviewPlan(r.Context(), d)
		if err != nil {
			return err
		}
		return write(w, http.StatusOK, map[string]any{"context": name, "effects": append([]string{}, effects...)})
	}
	if d.Who, err = decider(r, by); err != nil {
		return err
	}
	if name, err = s.supervisor.DecidePlan(r.Context(), d); err != nil {
		return err
	}
	decision := journal.Approved
	if d.Reject {
		decision = journal.Rejected
	}
	return s.sendDecision(w, r, name, map[string]any{"context": name, "decision": decision, "hash": d.Hash})
}

// decider returns the name to record for a request's decision: that of its token, with the claimed
// name beside it.
func decider(r *http.Request, claimed string) (journal.Who, error) {
	who := journal.Who{By: callerOf(r).name, Claimed: strings.TrimSpace(claimed)}
	if err := who.Check(); err != nil {
		return who, wrong("by: %s", err)
	}
	return who, nil
}
