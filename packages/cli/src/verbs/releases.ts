import { resolve } from "node:path";
import type { Verb } from "../command/verb.ts";
import { showResult, showRows } from "../output/show.ts";

const jsonOption = { name: "json", summary: "print JSON" };
const details =
  "Reads the home and the store from the environment and the configuration file, as a node does. The node may run.";

const listReleases: Verb = {
  name: "releases ls",
  summary: "list the releases of gVisor that the node keeps, and what needs them",
  options: [jsonOption],
  details,
  examples: ["sandpiper releases ls"],
  learnMore: "docs/operations.md",
  async run(arguments_) {
    const rows = await (await open()).list();
    await showRows(arguments_, {
      rows,
      columns: [
        { title: "PROGRAM", cell: ({ program }) => program },
        { title: "VERSION", cell: ({ version }) => version },
        { title: "NEW SANDBOXES", cell: ({ isCurrent }) => (isCurrent ? "yes" : "no") },
        { title: "RUNNING", cell: ({ instances }) => String(instances.length) },
        { title: "SAVED", cell: ({ sandboxes }) => String(sandboxes.length) },
      ],
    });
    return undefined;
  },
};

const addRelease: Verb = {
  name: "releases add",
  summary: "keep a runsc, or an agent, that checkpoints need",
  operands: ["FILE"],
  completesPaths: true,
  options: [jsonOption],
  details: `${details} FILE is copied.
New sandboxes keep using the installed release. The node removes a release that nothing needs.`,
  examples: ["sandpiper releases add ./runsc"],
  learnMore: "docs/operations.md",
  async run(arguments_) {
    const [file = ""] = arguments_.operands;
    const added = await (await open()).add(resolve(file));
    await showResult(arguments_, { json: added, lines: [`kept ${added.program} ${added.version}`] });
    return undefined;
  },
};

async function open() {
  const { loadNodeConfig, openReleases } = await import("@sandpiper/node/server");
  return openReleases(await loadNodeConfig({ argv: [], env: process.env }));
}

export const releasesVerb: Verb = {
  name: "releases",
  summary: "list and add the releases of gVisor that saved sandboxes need",
  options: [],
  actions: [listReleases, addRelease],
};
