import { resolve } from "node:path";
import type { CreateSandboxOptions } from "@sandpiper/node";
import { SandboxError } from "@sandpiper/protocol/error";
import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/syntax.ts";
import { invalidValue } from "../command/usage-error.ts";
import { engineNetwork, networkOption } from "./network-options.ts";
import { parseLabels } from "./values.ts";

/** How a container is created; providers without containers refuse all but --image. */
export const containerOptions: readonly Option[] = [
  {
    name: "image",
    value: "IMAGE",
    summary: "an image of the node; with docker, a reference such as python:3.13",
  },
  {
    name: "pull",
    value: "WHEN",
    choices: ["missing", "always", "never"],
    default: "missing",
    summary: "when to pull the image",
  },
  networkOption,
  {
    name: "publish",
    value: "[[ADDRESS:]HOST:]PORT[/udp]",
    isRepeatable: true,
    summary: "publish a port of the container, at a free loopback port of the engine's machine unless given",
  },
  {
    name: "service",
    value: "RESTART",
    choices: ["always", "on-failure", "never"],
    summary: "run the image's own command as process service, and when to restart it",
  },
  { name: "container-label", value: "KEY=VALUE", isRepeatable: true, summary: "label the container in the engine" },
  {
    name: "mount",
    value: "SRC:DST[:rw]",
    isRepeatable: true,
    completes: "path",
    summary: "mount a directory of the engine's machine, read-only unless :rw; a node must allow it",
  },
  {
    name: "workspace",
    value: "DIR|URL[#REF]",
    completes: "path",
    summary: "mount a directory at /workspace (vm-docker copies it), or clone a git repository into it",
  },
  {
    name: "cache",
    value: "NAME:PATH",
    isRepeatable: true,
    summary: "mount a cache that all containers of the project share",
  },
  {
    name: "volume",
    value: "NAME[:PATH]",
    isRepeatable: true,
    summary: "mount a volume that a destroyed sandbox left (see sandpiper volumes)",
  },
  {
    name: "project",
    value: "NAME",
    default: "default",
    summary: "project that owns the caches and, with vm-docker, the machine",
  },
  { name: "read-only", summary: "make the root filesystem of the container read-only" },
];

type Container = NonNullable<CreateSandboxOptions["container"]>;

/** The option that sets each field of a container. */
const optionOf: Readonly<Partial<Record<string, string>>> = {
  image: "image",
  imagePullPolicy: "pull",
  network: "network",
  ports: "publish",
  binds: "mount",
  workspace: "workspace",
  caches: "cache",
  project: "project",
  isRootReadOnly: "read-only",
} satisfies Partial<Record<keyof Container, string>>;

/** In an error about options that only containers support, names the options of the command line. */
export async function namingOptions<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    if (!SandboxError.is(thrown, "no_containers")) throw thrown;
    const { details } = thrown;
    const fields = (details["fields"] as readonly string[] | undefined) ?? [];
    if (fields.length === 0) throw thrown;
    const names = fields.map((field) => `--${optionOf[field] ?? field}`).join(", ");
    throw new SandboxError("no_containers", {
      message: `cannot use ${names}: provider ${details["provider"]} does not run containers`,
      hint: "leave it out, or use a provider of containers, such as --provider docker",
      details: { provider: String(details["provider"]), fields },
      cause: thrown,
    });
  }
}

/** Undefined when no option is about a container. */
export function containerFrom(arguments_: Arguments): Container | undefined {
  const given = {
    image: arguments_.get("image"),
    imagePullPolicy: arguments_.get("pull") as Container["imagePullPolicy"],
    network: engineNetwork(arguments_),
    ports: listOf(arguments_, "publish", parsePort),
    service: parseService(arguments_.get("service")),
    labels: parseContainerLabels(arguments_.all("container-label")),
    binds: listOf(arguments_, "mount", parseMount),
    workspace: parseWorkspace(arguments_.get("workspace")),
    caches: listOf(arguments_, "cache", parseCache),
    volumes: listOf(arguments_, "volume", parseVolume),
    project: arguments_.get("project"),
    isRootReadOnly: arguments_.has("read-only") || undefined,
  };
  const defined = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return Object.keys(defined).length === 0 ? undefined : (defined as Container);
}

/** The REST interface takes the image beside the container, and no container when it would be empty. */
export function splitContainer({ image, ...rest }: Container = {}) {
  return { image, container: Object.keys(rest).length === 0 ? undefined : rest };
}

/** In this process the user decides what may be mounted: they could do the same with the engine itself. */
export function dockerFrom(container: Container | undefined): CreateSandboxOptions["docker"] {
  if (container === undefined) return undefined;
  const { binds = [], workspace, network, ports = [] } = container;
  const paths = binds.map(({ source }) => source);
  if (workspace !== undefined && "path" in workspace) paths.push(workspace.path);
  const published = ports.flatMap((port) => (typeof port === "number" ? [] : [port]));
  const hostPorts = published.flatMap(({ host }) => (host === undefined ? [] : [`${host}`]));
  const hostAddresses = published.flatMap(({ address }) => address ?? []);
  return {
    allowedPaths: paths,
    ...(network === undefined ? {} : { networks: [network] }),
    ...(hostPorts.length === 0 ? {} : { hostPorts }),
    ...(hostAddresses.length === 0 ? {} : { hostAddresses }),
  };
}

export function vmDockerFrom(container: Container | undefined): CreateSandboxOptions["vmDocker"] {
  const workspace = container?.workspace;
  if (workspace === undefined) return undefined;
  if ("path" in workspace) return { allowedPaths: [workspace.path] };
  const host = URL.parse(workspace.git)?.host;
  return host === undefined ? undefined : { gitHosts: [host] };
}

function listOf<Item>(arguments_: Arguments, name: string, parse: (text: string) => Item): Item[] | undefined {
  const texts = arguments_.all(name);
  return texts.length === 0 ? undefined : texts.map(parse);
}

type Port = NonNullable<Container["ports"]>[number];

/** As `docker run --publish` writes it; an IPv6 address is in brackets. */
const PUBLISH =
  /^(?:(?:(?<address>[\d.]+|\[[\da-f:.]+\]):)?(?<host>\d{1,5}):)?(?<inside>\d{1,5})(?:\/(?<protocol>tcp|udp))?$/i;

function parsePort(value: string): Port {
  const { address, host, inside, protocol } = PUBLISH.exec(value)?.groups ?? {};
  const isPort = (text: string) => Number(text) >= 1 && Number(text) <= 65_535;
  if (inside === undefined || !isPort(inside) || (host !== undefined && !isPort(host))) {
    const hint = "write the port inside the container, such as --publish 3000, or HOST:PORT, such as 8080:80";
    throw invalidValue("publish", { value, expected: "[[ADDRESS:]HOST:]PORT[/udp] with ports from 1 to 65535", hint });
  }
  if (host === undefined && protocol === undefined) return Number(inside);
  return {
    container: Number(inside),
    ...(host === undefined ? {} : { host: Number(host) }),
    ...(protocol?.toLowerCase() === "udp" ? { protocol: "udp" } : {}),
    ...(address === undefined ? {} : { address: address.replace(/^\[|\]$/g, "") }),
  };
}

function parseService(restart: string | undefined): Container["service"] {
  return restart === undefined ? undefined : { restart: restart as "always" | "on-failure" | "never" };
}

function parseContainerLabels(texts: readonly string[]): Container["labels"] {
  return texts.length === 0 ? undefined : parseLabels(texts, "container-label");
}

function parseVolume(value: string) {
  const [, name, path] = /^(sandpiper-[a-z]+-[0-9a-f-]{36})(?::(\/[^:]+))?$/.exec(value) ?? [];
  if (name !== undefined) return path === undefined ? { name } : { name, path };
  const hint = "`sandpiper volumes ls` shows the names";
  throw invalidValue("volume", { value, expected: "the name of a kept volume, with or without :PATH", hint });
}

function parseMount(value: string) {
  const [, source, target, mode = "ro"] = /^([^:]+):(\/[^:]*)(?::(ro|rw))?$/.exec(value) ?? [];
  if (source !== undefined && target !== undefined) {
    return { source: resolve(source), target, isReadOnly: mode === "ro" };
  }
  const hint = "for example --mount ./src:/src, or --mount ./src:/src:rw to make it writable";
  throw invalidValue("mount", { value, expected: "SRC:DST with an absolute DST", hint });
}

function parseCache(value: string) {
  const [, name, path] = /^([a-z0-9][a-z0-9_-]{0,62}):(\/[^:]+)$/.exec(value) ?? [];
  if (name !== undefined && path !== undefined) return { name, path };
  const hint = "for example --cache npm:/root/.npm";
  throw invalidValue("cache", { value, expected: "a lower-case name and an absolute path", hint });
}

function parseWorkspace(value: string | undefined): Container["workspace"] {
  if (value === undefined) return undefined;
  if (!/^[a-z+]+:\/\//.test(value)) return { path: resolve(value) };
  const [url = "", ref, ...rest] = value.split("#");
  if (!/^(https?|git|ssh):\/\/\S+$/.test(url) || ref === "" || rest.length > 0) {
    const hint = "write an https://, ssh:// or git:// URL, with #REF for a branch or tag; or a directory";
    throw invalidValue("workspace", { value, expected: "a git repository or a directory", hint });
  }
  return ref === undefined ? { git: url } : { git: url, ref };
}
