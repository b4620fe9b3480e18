import { configFields } from "../config/config-field.ts";

/** The text of `--help`. */
export function usage(): string {
  const rows = configFields.map(({ flag, kind, description, shownDefault }) => {
    const value = kind === "flag" ? "" : kind === "number" ? " NUMBER" : kind === "json" ? " JSON" : " TEXT";
    const byDefault = kind === "flag" ? "" : ` (default: ${shownDefault.replaceAll("`", "")})`;
    return [`--${flag}${value}`, `${description}${byDefault}`] as const;
  });
  const all = [["--config FILE", "Configuration file. (default: config.json in home)"], ...rows] as const;
  const width = Math.max(...all.map(([flag]) => flag.length));
  return `Start a Sandpiper node in the foreground and run it until Ctrl-C or SIGTERM.

Options:
${all.map(([flag, text]) => `  ${flag.padEnd(width)}  ${text}`).join("\n")}

You can also set an option in the environment (--log-level is SANDPIPER_LOG_LEVEL) or in the configuration file.
An option on the command line overrides the environment, which overrides the file.

Exit codes:
  0         stopped by a signal
  1         failed
  2         invalid configuration
  130, 143  ended at once by a second Ctrl-C or SIGTERM
`;
}
