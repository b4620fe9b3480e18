import { parseArgs } from "node:util";

export const USAGE = `usage: npm run bench -- [options]

Measures Sandpiper side by side with what a user would pick instead, and says whether its promises hold.

  --only NAME       run this benchmark only (repeatable; --list shows the names)
  --live N          sandboxes of the scale benchmark (500)
  --json FILE       write {machine, results, targets} as JSON
  --markdown FILE   write the report as a page of documentation
  --list            show the benchmarks and what they measure against
  --help            show this

As root: sandboxes, cgroups and dockerd need it. Where dockerd is not installed, Debian's docker.io is downloaded once
and unpacked into the cache directory; nothing is installed. Everything else lies in one temporary directory and is
removed at the end, also after Ctrl-C.
Exit code: 0 all targets hold, 1 one does not or could not be measured, 2 wrong arguments, 130 interrupted.
`;

export type BenchArguments = ReturnType<typeof parseArguments>;

/** Throws a TypeError for invalid arguments. */
export function parseArguments(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", multiple: true, default: [] },
      live: { type: "string", default: "500" },
      json: { type: "string" },
      markdown: { type: "string" },
      list: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const { only, live, json: jsonPath, markdown: markdownPath, list, help } = values;
  const liveCount = Number(live);
  if (!Number.isInteger(liveCount) || liveCount < 1)
    throw new TypeError(`--live ${live}: expected a whole number above 0`);
  return { only, liveCount, jsonPath, markdownPath, list, help };
}
