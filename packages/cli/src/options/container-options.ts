import { resolve } from "node:path";
import type { CreateSandboxOptions } from "@sandpiper/node";
import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/syntax.ts";
import { invalidValue } from "../command/usage-error.ts";

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
  { name: "network", value: "NAME", default: "none", summary: "network of the container, such as bridge" },
  {
    name: "publish",
    value: "PORT",
    isRepeatable: true,
    summary: "publish a port of the container at a free loopback port of the engine's machine",
  },
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
    name: "project",
    value: "NAME",
    default: "default",
    summary: "project that owns the caches and, with vm-docker, the machine",
  },
  { name: "read-only", summary: "make the root filesystem of the container read-only" },
];

type Container = NonNullable<CreateSandboxOptions["container"]>;

/** Undefined when no option is about a container. */
export function containerFrom(arguments_: Arguments): Container | undefined {
  const given = {
    image: arguments_.get("image"),
    imagePullPolicy: arguments_.get("pull") as Container["imagePullPolicy"],
    network: arguments_.get("network"),
    ports: listOf(arguments_, "publish", parsePort),
    binds: listOf(arguments_, "mount", parseMount),
    workspace: parseWorkspace(arguments_.get("workspace")),
    caches: listOf(arguments_, "cache", parseCache),
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
  const { binds = [], workspace, network } = container;
  const paths = binds.map(({ source }) => source);
  if (workspace !== undefined && "path" in workspace) paths.push(workspace.path);
  return { allowedPaths: paths, ...(network === undefined || network === "none" ? {} : { networks: [network] }) };
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

function parsePort(value: string): number {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : 0;
  if (port >= 1 && port <= 65_535) return port;
  const hint = "write the port inside the container, such as --publish 3000; the engine picks the port outside";
  throw invalidValue("publish", { value, expected: "a port from 1 to 65535", hint });
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
