package cmd

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// interruptible is a project whose activity is slow the first time that it runs.
var interruptible = map[string]string{
	"obelus.lua": `return {
		allow = { read = { "begun" }, write = { "begun" } },
		serve = { hooks = {
			push = { plan = "plans/slow.lua", verify = "hmac-sha256", secret = "PUSH_SECRET" },
			unset = { plan = "plans/slow.lua", verify = "hmac-sha256", secret = "NO_PUSH_SECRET" },
		} } }`,
	"activities/a.lua": `Activity.register("slow", { timeout = 600 }, function()
		local fs = require("fs")
		if fs.exists("begun") then return "again" end
		fs.write("begun", "yes")
		require("log").warn("it is slow now")
		require("time").sleep(300)
	end)`,
	"plans/slow.lua": `return { calls = { { _tool = "slow", _outputPath = "†state.said" } }, output = "†state.said" }`,
}

// TestOnce_Killed holds that run --once goes on with a run whose process was killed.
func TestOnce_Killed(t *testing.T) {
	dir := project(t, interruptible)
	p := start(t, dir, "run", "--once", "-c", "night", "plans/slow.lua")
	p.says("it is slow now")
	p.ends(syscall.SIGKILL)
	for range 2 {
		if got := obelusOutput(t, exitDone, "-C", dir, "run", "--once", "-c", "night", "-q", "plans/slow.lua"); strings.TrimSpace(got) != `"again"` {
			t.Errorf("it gives %s", got)
		}
	}
}

// TestHooks_OfKilledServer holds that a delivery that was answered survives its server, and that
// the next server knows it when it comes again.
func TestHooks_OfKilledServer(t *testing.T) {
	t.Setenv("PUSH_SECRET", "a secret")
	dir := project(t, interruptible)
	const body = `{"ref":"main"}`
	mac := hmac.New(sha256.New, []byte("a secret"))
	mac.Write([]byte(body))
	deliver := func(url, hook string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/hooks/"+hook, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, strings.TrimSpace(string(text))
	}
	p, url := serving(t, dir)
	if said := p.said.String(); !strings.Contains(said, "hook=unset variable=NO_PUSH_SECRET") || strings.Contains(said, "hook=push") {
		t.Errorf("the server says of its hooks:\n%s", said)
	}
	if status, text := deliver(url, "unset"); status != http.StatusServiceUnavailable {
		t.Error(status, text)
	}
	status, first := deliver(url, "push")
	if status != http.StatusAccepted {
		t.Fatal(status, first)
	}
	p.says("it is slow now")
	p.ends(syscall.SIGKILL)
	p, url = serving(t, dir)
	if status, again := deliver(url, "push"); status != http.StatusOK || again != first {
		t.Errorf("%d %s, and at first %s", status, again, first)
	}
	p.says("status=done")
	name := strings.TrimSuffix(strings.TrimPrefix(first, `{"context":"`), `"}`)
	if got := obelusOutput(t, exitDone, "-C", dir, "get", "-c", name, "†state.said"); strings.TrimSpace(got) != `"again"` {
		t.Errorf("the run gave %s", got)
	}
}
