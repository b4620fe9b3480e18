import { readFile as readFileOfHost } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { type ConfigEntry, configError, wrongValue } from "./config-error.ts";
import { configFields } from "./config-field.ts";
import { type NodeConfig, type NodeConfigOptions, nodeConfigSchema } from "./node-config.ts";
import { readConfigFile } from "./read-config-file.ts";
import { CONFIG_FILE_VARIABLE, readEnvironment } from "./read-environment.ts";
import { readFlags } from "./read-flags.ts";

export interface ConfigSources {
  readonly argv?: readonly string[] | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly readFile?: ((path: string) => Promise<string>) | undefined;
}

/** Later sources override earlier ones: defaults, the file, the environment, flags. */
export async function loadNodeConfig(sources: ConfigSources = {}): Promise<NodeConfig> {
  const { argv = [], env = process.env, readFile = (path) => readFileOfHost(path, "utf8") } = sources;
  const flags = readFlags(argv);
  const environment = readEnvironment(env);
  const named = flags.configFile ?? (env[CONFIG_FILE_VARIABLE] || undefined);
  const file =
    named === undefined
      ? await readFileOfHome(homeOf(flags.entries.get("home") ?? environment.get("home")), readFile)
      : await readNamedFile(resolve(named), readFile);
  return checked(new Map([...file, ...environment, ...flags.entries]));
}

/** Checks a configuration that a program passes as an object. */
export function parseNodeConfig(options: NodeConfigOptions = {}): NodeConfig {
  return checked(readConfigFile("the program", JSON.stringify(options)));
}

function homeOf(entry: ConfigEntry | undefined): string {
  return checked(new Map(entry === undefined ? [] : [["home", entry]])).home;
}

async function readNamedFile(path: string, readFile: (path: string) => Promise<string>) {
  try {
    return readConfigFile(path, await readFile(path));
  } catch (thrown) {
    if (!(thrown instanceof Error && "errno" in thrown)) throw thrown;
    throw configError([`cannot read the file ${path} (${thrown.message})`], "name an existing file");
  }
}

async function readFileOfHome(home: string, readFile: (path: string) => Promise<string>) {
  const path = join(home, "config.json");
  let text: string;
  try {
    text = await readFile(path);
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return new Map<string, ConfigEntry>();
    throw configError([`cannot read the file ${path} (${message})`], "make it readable or remove it");
  }
  const entries = readConfigFile(path, text);
  if (!entries.has("home")) return entries;
  throw configError(
    [`home cannot be set in ${path}, because home says where that file is`],
    "set SANDPIPER_HOME instead",
  );
}

function checked(entries: ReadonlyMap<string, ConfigEntry>): NodeConfig {
  const parsed = nodeConfigSchema.safeParse(treeOf(entries));
  if (!parsed.success) throw configError([...new Set(parsed.error.issues.map((issue) => problemOf(issue, entries)))]);
  const config = parsed.data;
  if ((config.tls.certFile === null) !== (config.tls.keyFile === null)) {
    const [given, missing] = config.tls.certFile === null ? ["keyFile", "certFile"] : ["certFile", "keyFile"];
    throw configError([`tls.${given} is set but tls.${missing} is not`], "set both or neither");
  }
  if (config.providers.includes("local") && config.defaultProvider !== "local") {
    const why = "providers includes local, which isolates nothing: every key could run commands as the node's user";
    throw configError([why], 'remove it, or set defaultProvider to "local"');
  }
  return deepFrozen({ ...config, imagesDir: config.imagesDir ?? join(config.home, "images") });
}

function treeOf(entries: ReadonlyMap<string, ConfigEntry>): Record<string, unknown> {
  const tree: Record<string, Record<string, unknown>> = {};
  for (const [key, { value }] of entries) {
    const [group, name] = key.split(".");
    if (name === undefined) Object.assign(tree, { [key]: value });
    else Object.assign(tree, { [String(group)]: { ...tree[String(group)], [name]: value } });
  }
  return tree;
}

function problemOf(issue: z.core.$ZodIssue, entries: ReadonlyMap<string, ConfigEntry>): string {
  const where = z.core.toDotPath(issue.path);
  const field = configFields.find(({ key }) => where === key || where.startsWith(`${key}[`) || where === `${key}.`);
  const entry = field === undefined ? undefined : entries.get(field.key);
  return field === undefined || entry === undefined ? `${where}: ${issue.message}` : wrongValue(field, entry, where);
}

function deepFrozen<T extends object>(value: T): T {
  for (const inner of Object.values(value)) if (typeof inner === "object" && inner !== null) deepFrozen(inner);
  return Object.freeze(value);
}
