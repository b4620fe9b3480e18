import type { Verb } from "../command/verb.ts";
import { print } from "../output/print.ts";

export const upVerb: Verb = {
  name: "up",
  usage: "[OPTIONS]",
  summary: "start a node here, and run it until Ctrl-C",
  options: [
    { name: "port", value: "PORT", summary: "where it listens; 0 takes a free one (4747)" },
    { name: "host", value: "ADDRESS", summary: "on which address (127.0.0.1)" },
    { name: "home", value: "DIR", completes: "directory", summary: "where it keeps its state (~/.sandpiper)" },
    { name: "config", value: "FILE", completes: "path", summary: "a file to read the rest from" },
    { name: "log-level", value: "LEVEL", summary: "how much it tells (info)" },
  ],
  passesOnArguments: true,
  details: `
sandpiper up --help lists every option. Sandboxes go on when the node stops, and the next node takes them over.`,
  async run({ words }) {
    const { runNode } = await import("@sandpiper/node/server");
    const isHelp = words.includes("--help") || words.includes("-h");
    if (!isHelp) return runNode(words);
    await print("Usage: sandpiper up [OPTIONS]\n\n");
    return runNode(["--help"]);
  },
};
