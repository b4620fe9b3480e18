import type { CreateSecretBody, SecretResource } from "@sandpiper/sdk";
import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/syntax.ts";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { readSecretValue } from "../options/secret-value.ts";
import { jsonOption } from "../options/shared-options.ts";
import { age } from "../output/format.ts";
import { showResult, showRows } from "../output/show.ts";
import type { Column } from "../output/table.ts";
import { requireNode } from "../target/find-node.ts";

type Injection = NonNullable<CreateSecretBody["inject"]>;

const fileOption: Option = {
  name: "file",
  value: "FILE",
  completes: "path",
  summary: "read the value from FILE instead of standard input",
};

const bindingOptions: readonly Option[] = [
  {
    name: "host",
    value: "HOST[:PORT]",
    isRepeatable: true,
    summary: "send the value to this host only, such as api.openai.com or *.example.com; the default port is 443",
  },
  {
    name: "header",
    value: "NAME",
    summary: "set this header of each request, with --format; without it, replace the placeholder",
  },
  { name: "format", value: "TEXT", summary: 'the value of the header; {} stands for the secret, as in "Bearer {}"' },
  {
    name: "replace-in",
    value: "PLACE",
    isRepeatable: true,
    choices: ["header", "query", "path"],
    default: "header",
    summary: "where to replace the placeholder",
  },
  { name: "env", value: "NAME", summary: "variable that holds the placeholder inside" },
  { name: "allow-insecure", summary: "also send the value without encryption, to port 80 or PORT" },
];

const DETAILS = `The value is read from standard input or from a file, never from an argument; one newline at its end is ignored. The node
encrypts it and never shows it again.`;

const createSecret: Verb = {
  name: "secrets create",
  summary: "create a secret that sandboxes can use without seeing it",
  operands: ["NAME"],
  options: [...bindingOptions, fileOption, { name: "json", summary: "print the secret, without its value, as JSON" }],
  details: DETAILS,
  examples: [
    'sandpiper secrets create openai --host api.openai.com --header Authorization --format "Bearer {}" --env OPENAI_API_KEY',
    "sandpiper secrets create maps --host maps.example.com --replace-in query --env MAPS_KEY --file key.txt",
  ],
  learnMore: "docs/secrets.md",
  async run(arguments_) {
    const hosts = [...arguments_.all("host")];
    if (hosts.length === 0) throw usageError("missing --host", "name the host that gets the value");
    const inject = injectionFrom(arguments_);
    const env = arguments_.get("env");
    const client = await requireNode();
    const created = await client.secrets.create({
      name: arguments_.operands[0] as string,
      value: await readSecretValue(arguments_.get("file")),
      hosts,
      ...(inject && { inject }),
      ...(env !== undefined && { env }),
      allowInsecure: arguments_.has("allow-insecure"),
    });
    await showResult(arguments_, { json: created, lines: [created.name] });
  },
};

const listSecrets: Verb = {
  name: "secrets ls",
  summary: "list secrets, without their values",
  options: [jsonOption],
  async run(arguments_) {
    const client = await requireNode();
    await showRows(arguments_, { columns, rows: await client.secrets.list() });
  },
};

const updateSecret: Verb = {
  name: "secrets update",
  summary: "rotate a secret: the next request has the new value",
  operands: ["NAME"],
  options: [...bindingOptions, fileOption, { name: "json", summary: "print the secret, without its value, as JSON" }],
  details: `${DETAILS} Hosts and injection stay as they are unless you give new ones.`,
  examples: ["sandpiper secrets update openai --file new-key.txt"],
  learnMore: "docs/secrets.md",
  async run(arguments_) {
    const hosts = [...arguments_.all("host")];
    const inject = injectionFrom(arguments_);
    const env = arguments_.get("env");
    const client = await requireNode();
    const updated = await client.secrets.update(arguments_.operands[0] as string, {
      value: await readSecretValue(arguments_.get("file")),
      ...(hosts.length > 0 && { hosts }),
      ...(inject && { inject }),
      ...(env !== undefined && { env }),
      ...(arguments_.has("allow-insecure") && { allowInsecure: true }),
    });
    await showResult(arguments_, { json: updated, lines: [updated.name] });
  },
};

const removeSecret: Verb = {
  name: "secrets rm",
  summary: "delete secrets; placeholders in sandboxes then stay placeholders",
  operands: ["NAME…"],
  options: [],
  async run({ operands }) {
    const client = await requireNode();
    for (const name of operands) await client.secrets.remove(name);
  },
};

export const secretsVerb: Verb = {
  name: "secrets",
  summary: "manage secrets that the node injects into requests",
  options: [],
  actions: [createSecret, listSecrets, updateSecret, removeSecret],
};

function injectionFrom(arguments_: Arguments): Injection | undefined {
  const [header, format] = [arguments_.get("header"), arguments_.get("format")];
  const places = [...arguments_.all("replace-in")];
  if (header === undefined) {
    if (format !== undefined) throw usageError("--format needs --header", "name the header that gets the value");
    return places.length === 0 ? undefined : { replaceIn: places as ("header" | "query" | "path")[] };
  }
  if (places.length > 0) throw usageError("--header excludes --replace-in", "omit one of them");
  return { header, format: format ?? "{}" };
}

const columns: readonly Column<SecretResource>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "HOSTS", cell: ({ hosts }) => hosts.join(",") },
  { title: "INJECTED", cell: injectedInto },
  { title: "ENV", cell: ({ env }) => env ?? "" },
  { title: "ROTATED", align: "right", cell: ({ rotatedAt }) => age(rotatedAt) },
];

function injectedInto({ inject }: SecretResource): string {
  return "header" in inject ? `${inject.header}: ${inject.format}` : `placeholder in ${inject.replaceIn.join(", ")}`;
}
