import type { CreateKeyBody, KeyResource } from "@sandpiper/sdk";
import type { Verb } from "../command/verb.ts";
import { maxNetworkFrom, maxNetworkOption } from "../options/network-options.ts";
import { parseQuota, quotaOptions } from "../options/quota-options.ts";
import { jsonOption } from "../options/shared-options.ts";
import { parseDuration } from "../options/values.ts";
import { age, timeUntil } from "../output/format.ts";
import { showResult, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { usageColumns } from "../output/usage-columns.ts";
import { requireNode } from "../target/find-node.ts";
import { pick } from "../target/pick.ts";

const createKey: Verb = {
  name: "keys create",
  summary: "create an API key and print it",
  operands: ["NAME"],
  options: [
    { name: "tenant", value: "TENANT", default: "default", summary: "tenant whose sandboxes the key can access" },
    {
      name: "scope",
      value: "SCOPE",
      isRepeatable: true,
      choices: ["sandboxes", "read", "admin", "metrics"],
      default: "sandboxes",
      summary: "what the key permits",
    },
    { name: "expires", value: "DURATION", summary: "expire after DURATION, such as 12h or 30d" },
    ...quotaOptions,
    maxNetworkOption,
    { name: "json", summary: "print the key as a JSON object" },
  ],
  details: "The node stores only a hash of the key, so this is the only time that the key is shown.",
  examples: ["sandpiper keys create ci --expires 30d --max-sandboxes 10"],
  async run(arguments_) {
    const tenant = arguments_.get("tenant");
    const scopes = [...arguments_.all("scope")] as NonNullable<CreateKeyBody["scopes"]>;
    const expiresInMs = parseDuration(arguments_, "expires");
    const quota = parseQuota(arguments_);
    const maxNetwork = await maxNetworkFrom(arguments_);
    const client = await requireNode();
    const created = await client.keys.create({
      name: arguments_.operands[0] as string,
      ...(tenant === undefined ? {} : { tenant }),
      ...(scopes.length === 0 ? {} : { scopes }),
      ...(expiresInMs === undefined ? {} : { expiresAt: new Date(Date.now() + expiresInMs).toISOString() }),
      quota,
      ...(maxNetwork === undefined ? {} : { maxNetwork }),
    });
    await showResult(arguments_, { json: created, lines: [created.key] });
  },
};

const listKeys: Verb = {
  name: "keys ls",
  summary: "list API keys",
  options: [{ name: "usage", summary: "show what each key uses of its quota" }, jsonOption],
  async run(arguments_) {
    const client = await requireNode();
    const usage = arguments_.has("usage");
    const shown = usage ? [...columns.slice(0, 3), ...usageColumns] : columns;
    await showRows(arguments_, { columns: shown, rows: await client.keys.list({ usage }) });
  },
};

const updateKey: Verb = {
  name: "keys update",
  summary: "change a key's name, expiry, quota and most open network",
  operands: ["KEY"],
  options: [
    { name: "name", value: "NAME", summary: "new name" },
    { name: "expires", value: "DURATION", summary: "expire after DURATION from now, such as 30d, or never" },
    ...quotaOptions,
    maxNetworkOption,
    { name: "json", summary: "print the key as a JSON object" },
  ],
  details: `KEY is an ID, the beginning of an ID, or a name from "sandpiper keys ls". A limit of "none" removes the limit,
and 0 forbids all use. A change takes effect at once, on the other nodes of a cluster within about a second.`,
  examples: ["sandpiper keys update ci --max-sandboxes 20 --max-disk none"],
  async run(arguments_) {
    const [name, quota] = [arguments_.get("name"), parseQuota(arguments_)];
    const maxNetwork = await maxNetworkFrom(arguments_);
    const isForever = arguments_.get("expires") === "never";
    const expiresInMs = isForever ? undefined : parseDuration(arguments_, "expires");
    const client = await requireNode();
    const living = (await client.keys.list()).filter(({ revokedAt }) => revokedAt === null);
    const updated = await client.keys.update(pick("key", arguments_.operands[0] as string, living).id, {
      ...(name === undefined ? {} : { name }),
      ...(isForever ? { expiresAt: null } : {}),
      ...(expiresInMs === undefined ? {} : { expiresAt: new Date(Date.now() + expiresInMs).toISOString() }),
      quota,
      ...(maxNetwork === undefined ? {} : { maxNetwork }),
    });
    await showResult(arguments_, { json: updated, lines: [updated.id] });
  },
};

const revokeKey: Verb = {
  name: "keys revoke",
  summary: "revoke keys, immediately and permanently",
  operands: ["KEY…"],
  options: [],
  details: `KEY is an ID, the beginning of an ID, or a name from "sandpiper keys ls".`,
  examples: ["sandpiper keys revoke ci"],
  async run({ operands }) {
    const client = await requireNode();
    const living = (await client.keys.list()).filter(({ revokedAt }) => revokedAt === null);
    const targets = operands.map((text) => pick("key", text, living));
    for (const { id } of targets) await client.keys.revoke(id);
  },
};

export const keysVerb: Verb = {
  name: "keys",
  summary: "manage API keys",
  options: [],
  actions: [createKey, listKeys, updateKey, revokeKey],
};

const columns: readonly Column<KeyResource>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "NAME", cell: ({ name }) => name },
  { title: "TENANT", cell: ({ tenant }) => tenant },
  { title: "SCOPES", cell: ({ scopes }) => scopes.join(",") },
  { title: "STATE", cell: stateOf },
  { title: "AGE", align: "right", cell: ({ createdAt }) => age(createdAt) },
];

function stateOf({ revokedAt, expiresAt }: KeyResource): string {
  if (revokedAt !== null) return "revoked";
  if (expiresAt === null) return "valid";
  return Date.parse(expiresAt) <= Date.now() ? "expired" : `valid for ${timeUntil(expiresAt)}`;
}
