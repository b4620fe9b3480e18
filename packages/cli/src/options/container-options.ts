import { resolve } from "node:path";
import type { CreateSandboxOptions } from "@sandpiper/node";
import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/option.ts";
import { usageError } from "../command/usage-error.ts";

/** How a container is made; other providers refuse these. */
export const containerOptions: readonly Option[] = [
  { name: "image", value: "IMAGE", summary: "with docker a reference such as python:3.13; else an image of the node" },
  {
    name: "pull",
    value: "WHEN",
    choices: ["missing", "always", "never"],
    summary: "when the image is asked of its registry: missing (default), always or never",
  },
  { name: "network", value: "NAME", summary: "network of the container, such as bridge (none)" },
  {
    name: "publish",
    value: "PORT",
    isRepeatable: true,
    summary: "let a port inside be reached at a free port of the engine's loopback",
  },
  {
    name: "mount",
    value: "SRC:DST[:rw]",
    isRepeatable: true,
    completes: "path",
    summary: "a directory of the engine's machine, read-only unless :rw; a node must allow it",
  },
  {
    name: "workspace",
    value: "DIR|URL[#REF]",
    completes: "path",
    summary: "what is at /workspace: such a directory, or a git repository that is cloned",
  },
  {
    name: "cache",
    value: "NAME:PATH",
    isRepeatable: true,
    summary: "a directory that all containers of the project share",
  },
  {
    name: "project",
    value: "NAME",
    summary: "whose caches these are (default); with vm-docker whose machine, and needed",
  },
  { name: "read-only", summary: "let nothing of the image be written" },
];

type Container = NonNullable<CreateSandboxOptions["container"]>;

/** What a command line says about a container; undefined when it says nothing. */
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
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return Object.keys(said).length === 0 ? undefined : (said as Container);
}

/** In this very program its user is who allows what is mounted: they could do the same with the engine itself. */
export function dockerFrom(container: Container | undefined): CreateSandboxOptions["docker"] {
  if (container === undefined) return undefined;
  const { binds = [], workspace, network } = container;
  const paths = binds.map(({ source }) => source);
  if (workspace !== undefined && "path" in workspace) paths.push(workspace.path);
  return { allowedPaths: paths, ...(network === undefined || network === "none" ? {} : { networks: [network] }) };
}

function listOf<Item>(arguments_: Arguments, name: string, parse: (text: string) => Item): Item[] | undefined {
  const texts = arguments_.all(name);
  return texts.length === 0 ? undefined : texts.map(parse);
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw usageError(
    `--publish ${text} is no port`,
    "write a port inside, such as --publish 3000; outside it gets a free one",
  );
}

function parseMount(text: string) {
  const [, source, target, mode = "ro"] = /^([^:]+):(\/[^:]*)(?::(ro|rw))?$/.exec(text) ?? [];
  if (source === undefined || target === undefined) {
    throw usageError(`--mount ${text} does not say what goes where`, "write --mount SRC:/DST, or --mount SRC:/DST:rw");
  }
  return { source: resolve(source), target, isReadOnly: mode === "ro" };
}

function parseCache(text: string) {
  const [, name, path] = /^([a-z0-9][a-z0-9_-]{0,62}):(\/[^:]+)$/.exec(text) ?? [];
  if (name === undefined || path === undefined) {
    throw usageError(`--cache ${text} names no cache and its place`, "for example --cache npm:/root/.npm");
  }
  return { name, path };
}

function parseWorkspace(text: string | undefined): Container["workspace"] {
  if (text === undefined) return undefined;
  if (!/^[a-z+]+:\/\//.test(text)) return { path: resolve(text) };
  const [url = "", ref, ...rest] = text.split("#");
  if (!/^(https?|git|ssh):\/\/\S+$/.test(url) || ref === "" || rest.length > 0) {
    throw usageError(
      `--workspace ${text} is no git repository`,
      "write https://, ssh:// or git:// and a path, with #REF for a branch or tag; or a directory",
    );
  }
  return ref === undefined ? { git: url } : { git: url, ref };
}
