package cmd

import (
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/topics"
	"obelus/cmd/internal/usage"
	"obelus/luastd"
)

func rootCommand(a *app) *cobra.Command {
	versionFlag := false
	root := &cobra.Command{
		Use:   "obelus",
		Short: "run plans of Lua activities over a log in SQLite",
		Long: `obelus runs plans: lists of calls wired by paths. A call writes
"†state.user.status", another reads it, and from that obelus knows what must
wait, what runs side by side, and where every value came from. Activities are
Lua; everything that happens is kept in a log in SQLite.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usage.UnknownCommand,
		RunE: func(c *cobra.Command, _ []string) error {
			if versionFlag {
				return printVersion(a)
			}
			return c.Help()
		},
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			a.term.Quiet = a.quiet
			return checkGlobals(a, c)
		},
	}
	root.SetFlagErrorFunc(usage.FlagError)
	flags := root.PersistentFlags()
	flags.StringVarP(&a.projectFlag, "project", "C", "", "the project's `DIR` (default: the folder above with obelus.lua)")
	flags.StringVar(&a.dbFlag, "db", "", "the log's `FILE` (default: .obelus/log.db in the project)")
	flags.StringVarP(&a.context, "context", "c", "", "the context's `ID`; to read, the start of it is enough, and the default is the latest")
	flags.BoolVar(&a.json, "json", false, "print JSON, one object a line")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "no progress, only errors")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "say more")
	root.Flags().BoolVar(&versionFlag, "version", false, "print the version")
	for _, command := range subcommands(a) {
		usage.WrapArgs(command)
		// Its help shows no -c, and checkGlobals says why.
		if _, ok := commandsWithoutContext[command.Name()]; ok {
			command.Flags().StringVarP(&a.context, "context", "c", "", "")
			command.Flags().Lookup("context").Hidden = true
		}
		root.AddCommand(command)
	}
	root.SetOut(a.help) // before the completion command copies it
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = usage.HelpArgs
			topics.AddTo(c)
		case "completion":
			c.Args, c.RunE = usage.ShellArgs, root.RunE
			for _, shell := range c.Commands() {
				usage.WrapArgs(shell)
			}
		}
		c.Short = strings.ToLower(c.Short[:1]) + c.Short[1:]
	}
	return root
}

// commandsWithoutContext lists the commands to which -c says nothing, with the thing to do instead;
// $c is the name that was given. A user who gives -c expects less to be done than is.
var commandsWithoutContext = map[string]string{
	"backup":    "it copies the whole log (a context alone is copied by obelus log --json, and obelus append)",
	"restore":   "it restores the whole log",
	"models":    "models are those of the project",
	"init":      "a new project has no contexts",
	"prune":     "name the contexts behind it, whole: obelus prune ID",
	"schedules": "the runs of a schedule are contexts, which obelus contexts lists",
	"serve":     "requests name their contexts",
	"sql":       "name the context in the query (WHERE context = '$c')",
	"test":      "a test has a context of its own",
	"types":     "it writes what the project has",
	"version":   "it tells of the program alone",
}

// checkGlobals returns an error for global flags that say nothing.
func checkGlobals(a *app, c *cobra.Command) error {
	for _, f := range []struct{ name, value, message string }{
		{"context", a.context, "-c is empty: name a context, or leave the flag out"},
		{"db", a.dbFlag, "--db is empty: name a file, or leave the flag out"},
		{"project", a.projectFlag, "-C is empty: name a folder, or leave the flag out"},
	} {
		if c.Flags().Changed(f.name) && f.value == "" {
			return exit.Usage(f.message)
		}
	}
	for _, p := range luastd.Permissions {
		name := "allow-" + p.Name
		if f := c.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "[]" {
			return exit.Usagef("--%s= is empty: name what it is to allow, or leave the = out, which allows all", name)
		}
	}
	if err := usage.CheckEmpty(c); err != nil || !c.Flags().Changed("context") {
		return err
	}
	if instead, ok := commandsWithoutContext[c.Name()]; ok {
		return exit.Usagef("%s takes no -c: %s", c.Name(), strings.ReplaceAll(instead, "$c", a.context))
	}
	return nil
}

// subcommands returns the commands, sorted by name.
func subcommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		appendCommand(a),
		approvalsCommand(a),
		approveCommand(a),
		backupCommand(a),
		callCommand(a),
		callsCommand(a),
		cancelCommand(a),
		checkCommand(a),
		contextsCommand(a),
		diffCommand(a),
		forkCommand(a),
		getCommand(a),
		graphCommand(a),
		initCommand(a),
		logCommand(a),
		logsCommand(a),
		modelsCommand(a),
		promptCommand(a),
		pruneCommand(a),
		rejectCommand(a),
		replCommand(a),
		planCommand(a),
		replayCommand(a),
		restoreCommand(a),
		resumeCommand(a),
		runCommand(a),
		schedulesCommand(a),
		serveCommand(a),
		sqlCommand(a),
		testCommand(a),
		traceCommand(a),
		typesCommand(a),
		usageCommand(a),
		versionCommand(a),
		whyCommand(a),
	}
}
