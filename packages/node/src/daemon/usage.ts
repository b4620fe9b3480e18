import { configFields } from "../config/config-field.ts";

/** What `--help` shows. */
export function usage(): string {
  const rows = configFields.map(({ flag, kind, description, shownDefault }) => {
    const value = kind === "flag" ? "" : kind === "number" ? " NUMBER" : kind === "json" ? " JSON" : " TEXT";
    const byDefault = kind === "flag" ? "" : ` (${shownDefault.replaceAll("`", "")})`;
    return [`--${flag}${value}`, `${description}${byDefault}`] as const;
  });
  const all = [["--config FILE", "Read this file instead of config.json in home."], ...rows] as const;
  const width = Math.max(...all.map(([flag]) => flag.length));
  return `Starts a Sandpiper node and runs until it is stopped.

Flags (each also as SANDPIPER_… in the environment, and in the configuration file):
${all.map(([flag, text]) => `  ${flag.padEnd(width)}  ${text}`).join("\n")}

Exit codes: 0 stopped as asked, 1 failed, 2 wrong configuration, 130 or 143 ended at once by a second signal.
`;
}
