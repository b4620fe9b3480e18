import type { Verb } from "../command/verb.ts";
import { print } from "../output/print.ts";

export const upVerb: Verb = {
  name: "up",
  summary: "start a node in the foreground",
  options: [
    { name: "port", value: "PORT", default: "4747", summary: "port to listen on; 0 picks a free one" },
    { name: "host", value: "ADDRESS", default: "127.0.0.1", summary: "address to listen on" },
    { name: "home", value: "DIR", completes: "directory", default: "~/.sandpiper", summary: "home directory" },
    { name: "config", value: "FILE", completes: "path", summary: "configuration file" },
    { name: "log-level", value: "LEVEL", default: "info", summary: "least severe level to log" },
  ],
  passesOnArguments: true,
  details: `Sandboxes keep running when the node stops, and the next node adopts them. "sandpiper up --help" lists all options.`,
  examples: ["sandpiper up", "sandpiper up --port 8080 --home /srv/sandpiper"],
  learnMore: "docs/configuration.md",
  async run({ words }) {
    const { runNode } = await import("@sandpiper/node/server");
    const isHelp = words.includes("--help") || words.includes("-h");
    if (!isHelp) return runNode(words);
    await print("Usage: sandpiper up [OPTIONS]\n\n");
    const exitCode = await runNode(["--help"]);
    await print("\nLearn more:\n  Read docs/configuration.md.\n");
    return exitCode;
  },
};
