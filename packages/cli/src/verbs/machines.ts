import type { Client, MachineResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { jsonOption } from "../options/shared-options.ts";
import { age, shortId } from "../output/format.ts";
import { print, printJson } from "../output/print.ts";
import { showRows, wantsJson } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { requireNode } from "../target/find-node.ts";
import { pick } from "../target/pick.ts";

const listMachines: Verb = {
  name: "machines ls",
  summary: "list the virtual machines of projects and the sandboxes in them",
  options: [jsonOption],
  async run(arguments_) {
    const client = await requireNode();
    await showRows(arguments_, { columns, rows: await client.machines.list() });
  },
};

const inspectMachine: Verb = {
  name: "machines inspect",
  summary: "show a machine and the end of its console",
  operands: ["MACHINE"],
  options: [jsonOption],
  details: "MACHINE is an ID, the beginning of an ID, or a project.",
  examples: ["sandpiper machines inspect default"],
  async run(arguments_) {
    const client = await requireNode();
    const found = await findMachine(client, arguments_.operands[0] as string);
    const { console: text, ...machine } = await client.machines.get(found.id);
    if (wantsJson(arguments_)) {
      await printJson({ ...machine, console: text });
      return;
    }
    const { error, ...fields } = machine;
    const rows = Object.entries(fields).map(([name, value]) => `${name}: ${shown(value)}\n`);
    const why = error === null ? "" : `error: ${error.message}\n`;
    await print(`${rows.join("")}${why}\n${text}`);
  },
};

const stopMachines: Verb = {
  name: "machines stop",
  summary: "stop machines; the next sandbox of the project starts a new one",
  operands: ["MACHINE…"],
  options: [{ name: "force", summary: "stop a machine even if sandboxes use it; they fail" }],
  details: "MACHINE is an ID, the beginning of an ID, or a project. Caches stay.",
  examples: ["sandpiper machines stop default"],
  async run(arguments_) {
    const client = await requireNode();
    const found = [];
    for (const text of arguments_.operands) found.push(await findMachine(client, text));
    for (const { id } of found) await client.machines.stop(id, { force: arguments_.has("force") });
  },
};

export const machinesVerb: Verb = {
  name: "machines",
  summary: "manage the virtual machines of provider vm-docker",
  options: [],
  actions: [listMachines, inspectMachine, stopMachines],
};

async function findMachine(client: Client, text: string): Promise<MachineResource> {
  const machines = await client.machines.list();
  return pick(
    "machine",
    text,
    machines.map((machine) => ({ ...machine, name: machine.project })),
  );
}

function shown(value: unknown): string {
  return Array.isArray(value) ? value.join(" ") : String(value ?? "–");
}

const columns: readonly Column<MachineResource>[] = [
  { title: "ID", cell: ({ id }) => shortId(id) },
  { title: "PROJECT", cell: ({ project }) => project },
  { title: "STATE", cell: ({ state }) => state },
  { title: "MEMORY", align: "right", cell: ({ memoryMib }) => `${memoryMib} MiB` },
  { title: "CPUS", align: "right", cell: ({ vcpuCount }) => String(vcpuCount) },
  { title: "UP", align: "right", cell: ({ startedAt }) => (startedAt === null ? "–" : age(startedAt)) },
  { title: "SANDBOXES", cell: ({ sandboxes }) => sandboxes.map(shortId).join(" ") },
];
