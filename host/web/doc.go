// Package web serves a project over HTTP: it runs plans on request, answers questions about
// the log, streams events, and takes decisions. The runs are package host/supervise's. The
// command obelus serve uses it, and programs that embed Obelus can:
//
//	h, err := host.Open(host.Config{FS: os.DirFS(dir), Dir: dir})
//	log, err := sqlite.Open(filepath.Join(dir, ".obelus/log.db"), sqlite.Options{})
//	server := web.New(web.Config{Host: h, Log: log})
//	defer server.Drain(ctx)
//	http.ListenAndServe("127.0.0.1:7331", server)
//
// It may be mounted elsewhere: with http.StripPrefix, since its paths begin at /v1,
// and with a writer that can be flushed, which streams of events need. If the time of a
// request ends before the run that it waits for, it is answered as a request that does
// not wait.
//
// With Config.Page it has pages for people at / as well, which package page describes. They act by
// the requests below, with the role of the person that is logged in.
//
// Requests and answers are JSON, in the shapes that the commands print with
// --json; a list is an array. Held calls of a context's delegates are listed with the
// context, and decided there or in the delegate's: {"context","call",…} is a call, and
// {"context","plan","tick","since"} a lazy plan.
//
// [Doc] lists the requests.
//
// Checks, replays and calls by themselves are refused (429) while as many go on as runs may.
//
// A plan is a file below plans/. A run of it that is accepted (202, or 200 with wait) is
// in the log: if the process dies, the next server resumes it. If as many runs as allowed
// are active, the request first waits for its turn, and is refused (429) if too many wait
// already. A run that waits goes on by itself when its input is appended, by this server
// or by another process; a run that could not be recorded (503), when the log can be
// written again; and a run that the current scripts refuse, when they, or its plan's
// file, have been mended.
//
// With "once", or a key in the header Idempotency-Key, a request that comes again makes no
// second run: it is answered with the run that it has made. The key names the context unless
// the request does; one that is no name becomes key- and 32 hex digits of its SHA-256. A
// request with another plan or input under the same name is refused (409 exists).
//
// # Tokens
//
// A server that has tokens answers requests that bring one, "Authorization: Bearer TOKEN". Hooks
// need none, nor do GET /healthz, /openapi.json and /docs, which have nothing of the project. A
// token of the setting serve.tokens has a role, and each role includes those before it:
//
//	read    every GET, and check
//	run     start, cancel, resume, append, fork, call and replay too
//	decide  approve, reject and release too; resume with anything but wait and by;
//	        run with an approve other than always, or a lazy plan with the mode eager
//
// The token of the server itself, --token or OBELUS_TOKEN, may do everything, and so may all
// requests to a server without tokens.
//
// # Answers
//
// A request that waits for a run, or cancels one, gets {"context","status","output","error"} as
// soon as the output is known, with "background", the number of calls for which the run does not
// wait, if there are any at work (protocol §5). The error is null or {"code","message"}, with the
// code failed, cancelled, interrupted, or stopped if this server ended and the next one goes on
// with the run. A client that does not wait finds output and error later in GET
// /v1/contexts/{context}, beside the fields of the list of contexts; for a run that was cancelled
// the message may say less. The error in the list is a text; in a context that can't be read it has
// the code damaged. "stuck" is the reason why the current scripts do not let a run go on. A DELETE
// waits until running calls have ended, as long as the setting drain lets them; requests for runs
// of its context that wait for their turn are answered like it, and leave nothing.
//
// Messages are answered with {"context","seq","messages"}, a fork with
// {"context","parent","at"}, a decision with {"context","call","decision"}, without call
// for a plan. A decision about a run that was cancelled says "status":"cancelled": it
// counts once the run is resumed. A decision records the name of the request's token as its
// author: "token" for the server's own, "local" if it has none; and the "by" of the request beside
// it as claimed.
//
// An error is {"error":{"code","message"}}, with the objects of obelus check in "check"
// where a plan, a script or a message is refused:
//
//	400 request       the request makes no sense
//	401 token, 403 host, origin; role: the token may do less; signature: a request to a hook is not
//	signed
//	404 not-found, no-context, no-plan, no-call, no-run, no-tick, no-code, no-prompt
//	404 missing       the reference has no value
//	405 method
//	408 slow          the request did not come in time
//	409 busy          another process runs the context (its lease)
//	409 unfinished    its last run has not ended: resume it
//	409 call          the call, or the plan, is not in the state for this
//	409 delegate      the context is part of another context's run
//	409 exists, planner
//	413 too-large
//	422 plan, script, message, expression, policy, fork, prompt
//	429 full          with Retry-After, as 503 has where it helps
//	500 internal      the server's log says more; 503 where it may pass
//	503 log           it can't be read or written for now
//	503 stopping      the server ends
//	503 hook          the server has no secret for the hook
//	504 time          a handler around this one ended the request
//
// # Hooks
//
// The project's setting serve.hooks has addresses for requests that other programs send by
// themselves. They need no token: most are signed. A request starts a plan, or is appended as input
// to a run that waits, and is answered with {"context"}: 202 once it is in the log, and 200 if the
// same delivery comes again, which changes nothing. Config.Secret gives the secrets.
//
// # Events
//
// A stream begins with the events of the context so far, or with the first one after the
// id in Last-Event-ID, and goes on until the client goes or the server ends. There are
// message and call events, as in the lists, and run events,
// {"context","status","plan","tick","output","error","stopped"}, whose error is a text
// about the run itself; errors of calls are in call events. A call that only computes, for
// less than a millisecond, may have the event of its end alone. Each id is a position in
// the journal, so that a client that comes back misses nothing and gets nothing twice; an
// id beyond the end of the log, as after a backup was restored, begins anew. While a model
// writes there are model events, {"context","call","delta"}, without an id, for display: a
// client that was away does not get them. The call of a plan that is being made is the number
// of its tick. An empty delta ends a text, and the next delta begins another one, as where a
// model is asked again. Delegates have the streams of their own contexts, which calls name as
// child.
//
// GET /v1/events follows all contexts: an event context has a context as the list of contexts does,
// whenever that has changed. Changes are gathered for 200 ms. The stream begins with the first
// change after it is opened, or after the id in Last-Event-ID or after, where 0 is the beginning of
// the log; some may come twice. With inbox there are events inbox instead, {"waiting":3}: how many
// decisions a person is to make, at first and when that changes.
//
// # Safety
//
// A request is refused if its Host is not the address to which it came or one of
// Config.Names, or if its Origin is not that host: pages of other sites get nothing out of
// a server on a user's machine. With a Config.Token, or tokens in the settings, requests
// must bring one, and its role bounds what they may do; [CheckTokens] finds tokens that let
// nobody in. Bodies are bounded in size, each and all together with the values made of them
// (Config.Bodies), and so are answers that clients have not read yet (Config.Answers), runs
// in number and time, and streams in number. The time for headers and bodies is the
// http.Server's: set ReadHeaderTimeout and ReadTimeout.
package web
