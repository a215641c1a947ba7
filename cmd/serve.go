package cmd

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/host"
	"obelus/host/web"
)

// defaultAddr is the address at which serve listens by default.
const defaultAddr = "127.0.0.1:7331"

// reloadReminder is the time after which an error that keeps scripts from being loaded is printed
// again.
const reloadReminder = 30 * time.Second

// serveOptions holds the flags of serve.
type serveOptions struct {
	addr     string
	token    string
	names    []string
	body     int64
	queue    int
	runs     int
	timeout  time.Duration
	log      string
	noResume bool
	noWatch  bool
	noPage   bool
	readOnly bool
}

func serveCommand(a *app) *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "run plans on request, over HTTP",
		Long: `Serve the project over HTTP (obelus help server lists the paths): run plans
on request, show what the log holds, stream what happens, take decisions. What a
crash left is resumed, within a minute also what another process leaves that dies
while this one serves; what was begun with other permissions goes on with those of
the server. Scripts are loaded anew as they change.

At most --runs go on at once; a request for one more is answered when it has begun,
also without "wait", or with 429 if --queue others wait for that already.

At / it has a page for people: see obelus help page.

It listens on the loopback address. Another one needs a --token, or the
environment's OBELUS_TOKEN, which every request must bring, or tokens with names
and roles (serve.tokens in obelus.lua); names under which it is reached are given
by --name. The settings are in obelus.lua, under serve.

SIGTERM and an interrupt let running calls end within the time of the setting
drain; what is left undone is resumed by the next server that is
started. A second one ends it at once. SIGHUP loads the scripts anew, and takes
over what obelus.lua grants more than before, which a change alone does not.`,
		Example: `  obelus serve
  curl -d '{"plan":"plans/refund.lua","wait":true}' http://127.0.0.1:7331/v1/runs`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(c.Flags().Changed); err != nil {
				return err
			}
			return serveProject(c.Context(), a, o)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.addr, "addr", "", "listen at `HOST:PORT` (default "+defaultAddr+")")
	flags.StringVar(&o.token, "token", "", "a `TOKEN` that requests must bring (default: OBELUS_TOKEN)")
	flags.StringSliceVar(&o.names, "name", nil, "host `NAME` under which it is reached, beside its address")
	flags.Var((*cli.Bytes)(&o.body), "body", "`BYTES` that a request may have, such as 500KB (default 8MB)")
	flags.IntVar(&o.runs, "runs", 0, "at most `N` runs at once (default 64)")
	flags.IntVar(&o.queue, "queue", 0, "at most `N` runs that wait for their turn; more are refused (default 256)")
	flags.Var((*cli.Duration)(&o.timeout), "timeout", "cancel a run after `TIME` (default 1h)")
	flags.StringVar(&o.log, "log", "text", "`FORMAT` of what it logs: text, where \"| \" marks what scripts print, or json")
	flags.BoolVar(&o.noResume, "no-resume", false, "leave alone what a crash left")
	flags.BoolVar(&o.noPage, "no-page", false, "serve the JSON API alone, without pages for browsers")
	flags.BoolVar(&o.readOnly, "read-only", false, "refuse all requests that would change something, as for a display on a wall")
	flags.BoolVar(&o.noWatch, "no-watch", false, "load scripts anew on SIGHUP alone")
	registerLogLevel(a, c)
	a.allow.Register(c)
	a.models.Register(c)
	return c
}

func serveProject(ctx context.Context, a *app, o serveOptions) error {
	signal.Ignore(syscall.SIGPIPE) // the reader of its log may go away
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // before it listens, since SIGHUP would end the process
	if err := openServedProject(a, o.log); err != nil {
		return err
	}
	logger := a.shown.Logger
	defer a.host.Close()
	if err := a.openLog(); err != nil {
		return err
	}
	o.applyDefaults(a.host.Generation().Settings().Serve)
	tokens := a.host.Generation().Settings().Serve.Tokens
	if err := web.CheckTokens(tokens, o.token, os.Getenv); err != nil {
		return exit.Usage(err.Error())
	}
	l, err := o.listen(len(tokens) > 0)
	if err != nil {
		return err
	}
	server := web.New(web.Config{
		Host: a.host, Log: a.log, Token: o.token, Names: o.names, Body: o.body, Runs: o.runs, Queue: o.queue,
		Timeout: o.timeout, NoResume: o.noResume, Logger: logger, Secret: os.Getenv,
		Page: !o.noPage, Title: filepath.Base(a.dir), ReadOnly: o.readOnly,
	})
	for _, h := range a.host.Generation().Settings().Serve.Hooks {
		if h.Secret != "" && os.Getenv(h.Secret) == "" {
			logger.Warn("a hook refuses all requests: the variable with its secret is not set", "hook", h.Name, "variable", h.Secret)
		}
	}
	g := a.host.Generation()
	if o.log == "json" {
		logger.Info("serving", "project", a.dir, "url", "http://"+l.Addr().String(), "generation", g.Number, "scripts", len(g.Files()))
	} else {
		a.term.Noticef("serving %s at http://%s (%d scripts)", a.dir, l.Addr(), len(g.Files()))
	}
	defer onInterrupt(ctx, func() {
		if o.log == "json" {
			logger.Info("draining")
		} else {
			a.term.Infof("ending: what runs may come to its end; once more ends it now")
		}
	})()
	ended := make(chan struct{})
	watching, stop := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		reloadOnChange(watching, a, o, hangups, logger)
	}()
	err = server.Serve(ctx, l)
	stop()
	<-ended
	return err
}

// openServedProject loads the project.
func openServedProject(a *app, format string) error {
	config, err := a.projectConfig("")
	if err != nil {
		return err
	}
	if !a.found {
		return exit.Usagef("there is no %s in %s or above: serve needs a project (obelus init makes one)", host.SettingsFile, a.dir)
	}
	return a.openHost(config, format == "json")
}

func (o *serveOptions) check(given func(flag string) bool) error {
	if o.log != "text" && o.log != "json" {
		return exit.Usagef("--log %s: it is text or json", o.log)
	}
	if given("token") && strings.TrimSpace(o.token) == "" {
		return exit.Usage("--token is empty: give it a value, or leave it out")
	}
	if env := os.Getenv("OBELUS_TOKEN"); !given("token") && env != "" && strings.TrimSpace(env) == "" {
		return exit.Usage("OBELUS_TOKEN is nothing but white space: give a token, or leave it out")
	}
	for _, bound := range []struct {
		flag  string
		value int64
	}{{"runs", int64(o.runs)}, {"queue", int64(o.queue)}, {"timeout", int64(o.timeout)}} {
		if given(bound.flag) && bound.value <= 0 {
			return exit.Usagef("--%s must be above 0", bound.flag)
		}
	}
	return nil
}

// applyDefaults fills in the settings where flags say nothing.
func (o *serveOptions) applyDefaults(s host.Serving) {
	o.addr = cmp.Or(o.addr, s.Addr, defaultAddr)
	// A token from a file may end with a newline, which no header can contain.
	o.token = strings.TrimSpace(cmp.Or(o.token, os.Getenv("OBELUS_TOKEN")))
}

// listen opens the address. One that can be reached from other machines needs a token, which may be
// one of the settings.
func (o *serveOptions) listen(named bool) (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", o.addr)
	if err != nil {
		return nil, exit.Usagef("--addr %s: it must be HOST:PORT, for example %s", o.addr, defaultAddr)
	}
	if !addr.IP.IsLoopback() && o.token == "" && !named {
		return nil, exit.Usagef("%s can be reached from elsewhere: give a --token, or OBELUS_TOKEN, that requests must bring, or serve.tokens in %s", o.addr, host.SettingsFile)
	}
	network := "tcp"
	if addr.IP.To4() != nil {
		network = "tcp4" // else 0.0.0.0 would include all of IPv6
	}
	l, err := net.Listen(network, addr.String())
	if err != nil {
		return nil, exit.Usagef("can't listen at %s: %s", o.addr, cli.PlainError(err))
	}
	return l, nil
}

// reloadOnChange loads the scripts again when they change, and on each of hangups, until ctx is
// done.
func reloadOnChange(ctx context.Context, a *app, o serveOptions, hangups <-chan os.Signal, logger *slog.Logger) {
	report := func(r host.Reload) {
		if o.log == "json" {
			logReload(logger, r)
		} else {
			printReload(a.term, r, withSource)
		}
		if r.Err != nil {
			return
		}
		a.setLogLevel(r.Generation.Settings().Log)
		if err := web.CheckTokens(r.Generation.Settings().Serve.Tokens, o.token, os.Getenv); err != nil {
			logger.Warn("a token lets nobody in", "error", err)
		}
	}
	watched := make(chan error, 1)
	if !o.noWatch {
		go func() { watched <- a.host.Watch(ctx, report) }()
	}
	ticker := time.NewTicker(reloadReminder)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if !o.noWatch {
				<-watched
			}
			return
		case err := <-watched:
			if err != nil {
				a.term.Error(fmt.Errorf("%w: scripts are loaded anew on SIGHUP alone", err))
			}
			o.noWatch = true
		case <-hangups:
			report(a.host.Reload())
		case <-ticker.C:
			if r := a.host.LastReload(); r.Err != nil {
				report(r)
			}
		}
	}
}
