import type { CreateKeyBody, KeyResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { parseDuration } from "../options/duration-option.ts";
import { parseNumber } from "../options/number-option.ts";
import { shortDuration } from "../output/amounts.ts";
import { print } from "../output/print.ts";
import { jsonOption, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";

const createKey: Verb = {
  name: "keys create",
  usage: "[OPTIONS] NAME",
  summary: "make a key and print it, the only time that it is shown",
  options: [
    { name: "tenant", value: "TENANT", summary: "whose sandboxes it sees (default)" },
    {
      name: "scope",
      value: "SCOPE",
      isRepeatable: true,
      choices: ["sandboxes", "read", "admin"],
      summary: "what it may do: sandboxes, read, admin (sandboxes)",
    },
    { name: "expires", value: "TIME", summary: "after which it is worth nothing, such as 12h or 30d (never)" },
    { name: "max-sandboxes", value: "N", summary: "how many sandboxes it may have at once" },
    { name: "max-memory", value: "MIB", summary: "how much memory these may have together" },
    { name: "max-cpus", value: "N", summary: "how many CPUs these may have together" },
    { name: "json", summary: "print the whole key as one JSON object" },
  ],
  operands: { min: 1, max: 1, example: "sandpiper keys create NAME" },
  async run(arguments_) {
    const tenant = arguments_.get("tenant");
    const scopes = [...arguments_.all("scope")] as NonNullable<CreateKeyBody["scopes"]>;
    const expiresInMs = parseDuration(arguments_, "expires");
    const quota = {
      maxSandboxes: parseNumber(arguments_, "max-sandboxes", { example: 10 }),
      maxMemoryMib: parseNumber(arguments_, "max-memory", { example: 4096 }),
      maxVcpuCount: parseNumber(arguments_, "max-cpus", { decimals: 2, example: 4 }),
    };
    const { requireNode } = await import("../target/find-node.ts");
    const client = await requireNode();
    const created = await client.keys.create({
      name: arguments_.operands[0] as string,
      ...(tenant === undefined ? {} : { tenant }),
      ...(scopes.length === 0 ? {} : { scopes }),
      ...(expiresInMs === undefined ? {} : { expiresAt: new Date(Date.now() + expiresInMs).toISOString() }),
      quota,
    });
    await print(arguments_.has("json") ? `${JSON.stringify(created)}\n` : `${created.key}\n`);
    return 0;
  },
};

const listKeys: Verb = {
  name: "keys ls",
  usage: "[OPTIONS]",
  summary: "list the keys, which are themselves kept nowhere",
  options: [jsonOption],
  words: [],
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const client = await requireNode();
    await showRows(arguments_, { columns: columnsAt(Date.now()), rows: await client.keys.list() });
    return 0;
  },
};

const revokeKey: Verb = {
  name: "keys revoke",
  usage: "KEY…",
  summary: "make keys worth nothing, at once and for good",
  options: [],
  operands: { min: 1, max: Number.POSITIVE_INFINITY, example: "sandpiper keys revoke KEY" },
  details: "A key is named by its id, the beginning of it, or its name.",
  async run({ operands }) {
    const { requireNode } = await import("../target/find-node.ts");
    const { pick } = await import("../target/pick.ts");
    const client = await requireNode();
    const living = (await client.keys.list()).filter(({ revokedAt }) => revokedAt === null);
    const targets = operands.map((text) => pick("key", text, living));
    for (const { id } of targets) await client.keys.revoke(id);
    return 0;
  },
};

export const keysVerb: Verb = {
  name: "keys",
  usage: "create|ls|revoke",
  summary: "make, list and revoke keys of the node",
  options: [],
  actions: [createKey, listKeys, revokeKey],
  run: async () => 0,
};

function columnsAt(nowMs: number): readonly Column<KeyResource>[] {
  return [
    { title: "ID", cell: ({ id }) => id },
    { title: "NAME", cell: ({ name }) => name },
    { title: "TENANT", cell: ({ tenant }) => tenant },
    { title: "SCOPES", cell: ({ scopes }) => scopes.join(",") },
    { title: "STATE", cell: (key) => stateAt(nowMs, key) },
    { title: "AGE", align: "right", cell: ({ createdAt }) => shortDuration(nowMs - Date.parse(createdAt)) },
  ];
}

function stateAt(nowMs: number, { revokedAt, expiresAt }: KeyResource): string {
  if (revokedAt !== null) return "revoked";
  if (expiresAt === null) return "valid";
  const leftMs = Date.parse(expiresAt) - nowMs;
  return leftMs <= 0 ? "expired" : `valid for ${shortDuration(leftMs)}`;
}
