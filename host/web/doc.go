// Package web serves a project over HTTP: it runs plans on request, shows what
// the log holds, streams what happens, and takes decisions. It is what obelus
// serve serves, for programs that embed Obelus too:
//
//	h, err := host.Open(host.Config{FS: os.DirFS(dir), Dir: dir})
//	log, err := sqlite.Open(filepath.Join(dir, ".obelus/log.db"), sqlite.Options{})
//	server := web.New(web.Config{Host: h, Log: log})
//	defer server.Drain(ctx)
//	http.ListenAndServe("127.0.0.1:7331", server)
//
// It may be mounted elsewhere: with http.StripPrefix, since its paths begin at /v1,
// and with a writer that can be flushed, which streams of events need. Where the
// time of a request ends before a run does that it waits for, the answer is that of
// one that does not wait.
//
// Requests and answers are JSON, in the shapes that the commands print with
// --json; a list is an array. What a context's delegates hold is listed with the
// context, and decided about there or in theirs: {"context","call",…} is a call, and
// {"context","plan","tick","since"} a lazy plan.
//
//	POST   /v1/runs                                {"plan","input","context","wait","mode","approve"}
//	DELETE /v1/runs/{context}                      ?by= cancel
//	GET    /v1/contexts                            ?prefix= &limit=
//	GET    /v1/contexts/{context}
//	GET    /v1/contexts/{context}/log              ?kind= &path= &since= &after= &at=
//	GET    /v1/contexts/{context}/calls            ?at= &status=
//	GET    /v1/contexts/{context}/approvals
//	GET    /v1/contexts/{context}/get              ?ref= &at= &instance=
//	GET    /v1/contexts/{context}/why              ?ref= &at= &instance=
//	GET    /v1/contexts/{context}/events           ?after= server-sent events
//	POST   /v1/contexts/{context}/messages         a message, an array of them, or one a line
//	POST   /v1/contexts/{context}/approve          {"by"} release a lazy plan
//	POST   /v1/contexts/{context}/calls/{call}/approve   {"set","by"}
//	POST   /v1/contexts/{context}/calls/{call}/reject    {"reason","by"}
//	POST   /v1/contexts/{context}/resume           {"retry","skip","result","from","set","by","wait"}
//	POST   /v1/contexts/{context}/fork             {"context","at"}
//	GET    /v1/scripts                             what is loaded, and what keeps newer scripts from it
//	GET    /healthz, /metrics
//
// A plan is a file below plans/. A run of it that is accepted (202, or 200 with wait) is
// in the log: if the process dies, the next server resumes it. Where as many run as may,
// the request waits for its turn before that, and is refused (429) where too many wait
// already. A run that has come to a halt goes on by itself when what it waits for is
// appended, by this server or by another process; one that could not be recorded
// (503) when the log can be written again; and one that the scripts of that moment
// refuse when they, or its plan's file, have been mended.
//
// Corrections, "set", are arguments by their names, each put in the place of what stands
// there; dots lead inside: {"set":{"lines.0.amount":5}}.
//
// GET /healthz gives 200 while requests are taken and the log can be read, else 503.
//
// # Answers
//
// Who waits for a run, or cancels one, gets {"context","status","output","error"}: the
// error is null or {"code","message"}, its code failed, cancelled, interrupted, or stopped where this
// server ended and the next one goes on with the run. Who does not wait finds output and
// error later in GET /v1/contexts/{context}, beside what the list of contexts has; of a
// run that was cancelled the message may say less. The list's own error is a text, of a
// context that can't be read: alone it has the code damaged. "stuck" is why scripts as
// they are now do not let a run go on. A DELETE waits until calls at work have ended, as
// long as the setting drain lets them; requests for runs of its context that wait for their
// turn are answered like it, and leave nothing.
//
// Messages are answered with {"context","seq","messages"}, a fork with
// {"context","parent","at"}, a decision with {"context","call","decision"}, without call
// for a plan. A decision about a run that was cancelled says "status":"cancelled": it
// counts once the run is resumed. Who decides is recorded as "token", or "local" without one,
// with what they give as "by" beside it as claimed.
//
// An error is {"error":{"code","message"}}, with the objects of obelus check in "check"
// where a plan, a script or a message is refused:
//
//	400 request       what was asked can't be meant so
//	401 token, 403 host, origin
//	404 not-found, no-context, no-plan, no-call; missing: nothing is at the reference
//	405 method
//	408 slow          the request did not come in time
//	409 busy          somebody else runs the context (its lease)
//	409 unfinished    its last run is not at an end: resume it
//	409 call          the call, or the plan, is not as it must be for this
//	409 delegate      the context is part of another's run
//	409 exists, planner
//	413 too-large
//	422 plan, script, message, expression, policy, fork
//	429 full          with Retry-After, as 503 has where it helps
//	500 internal      the server's log says more; 503 where it may pass
//	503 log           it can't be read or written for now
//	503 stopping      the server ends
//	504 time          a handler around this one gives no more
//
// # Events
//
// A stream begins with what the context has seen, or behind Last-Event-ID, and
// goes on with what happens, until the client goes or the server ends. There are
// message and call events, as in the lists, and run events,
// {"context","status","plan","tick","output","error","stopped"}, whose error is a text
// about the run itself: what calls failed with is in theirs. A call that only computes,
// for less than a millisecond, may have the event of its end alone. Each id is its position in
// the journal, so that a client that comes back misses nothing and gets nothing twice;
// an id that the log does not reach, as after an older copy was put back, begins anew.
// What delegates do is in the streams of their own contexts, which calls name as child.
//
// # Safety
//
// Requests are refused whose Host is not the address that they came to or one of
// Config.Names, or whose Origin is not that host: no page of another site gets
// anything out of a server on somebody's machine. With a Config.Token every
// request but GET /healthz must bring it. What a request may take is bounded in
// size, what those take together that are being worked on is too, with what is made of
// them (Config.Bodies), and what of the answers clients have not read yet
// (Config.Answers); so are runs in number and time, and streams in number. Time for headers and bodies is the
// http.Server's: set ReadHeaderTimeout and ReadTimeout.
package web
