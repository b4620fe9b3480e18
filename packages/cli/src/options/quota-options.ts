import type { Quota } from "@sandpiper/sdk";
import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/syntax.ts";
import { parseNumber, parseSizeMib } from "./values.ts";

const MIB = 1024 * 1024;
/** "none" removes a limit, and 0 forbids all use; other options have no such values. */
const special = new Map([
  ["none", null],
  ["0", 0],
]);

type Parse = (arguments_: Arguments, name: string) => number | undefined;

interface QuotaOption {
  readonly limit: keyof Quota;
  readonly name: string;
  readonly value: "N" | "SIZE";
  readonly summary: string;
  readonly parse: Parse;
}

const count: Parse = (arguments_, name) => parseNumber(arguments_, name, { example: 10 });
const bytes: Parse = (arguments_, name) => {
  const sizeMib = parseSizeMib(arguments_, name);
  return sizeMib === undefined ? undefined : sizeMib * MIB;
};

const table: readonly QuotaOption[] = [
  { limit: "maxSandboxes", name: "max-sandboxes", value: "N", summary: "limit for sandboxes", parse: count },
  {
    limit: "maxMemoryMib",
    name: "max-memory",
    value: "SIZE",
    summary: "limit for their total memory, such as 4096 (MiB) or 4G",
    parse: parseSizeMib,
  },
  {
    limit: "maxVcpuCount",
    name: "max-cpus",
    value: "N",
    summary: "limit for their total CPUs",
    parse: (arguments_, name) => parseNumber(arguments_, name, { decimals: 2, example: 4 }),
  },
  { limit: "maxDiskMib", name: "max-disk", value: "SIZE", summary: "limit for their total disk", parse: parseSizeMib },
  { limit: "maxCheckpoints", name: "max-checkpoints", value: "N", summary: "limit for checkpoints", parse: count },
  {
    limit: "maxCheckpointBytes",
    name: "max-checkpoint-size",
    value: "SIZE",
    summary: "limit for the total size of checkpoints",
    parse: bytes,
  },
  {
    limit: "maxProcesses",
    name: "max-processes",
    value: "N",
    summary: "limit for running commands and processes on each node",
    parse: count,
  },
  {
    limit: "maxSockets",
    name: "max-sockets",
    value: "N",
    summary: "limit for open WebSockets on each node",
    parse: count,
  },
  {
    limit: "maxWatches",
    name: "max-watches",
    value: "N",
    summary: "limit for open file watches on each node",
    parse: count,
  },
  {
    limit: "maxRequests",
    name: "max-requests",
    value: "N",
    summary: "limit for concurrent requests on each node",
    parse: count,
  },
  {
    limit: "maxBodyBytes",
    name: "max-body-size",
    value: "SIZE",
    summary: "limit for bodies of requests in a node's memory",
    parse: bytes,
  },
];

export const quotaOptions: readonly Option[] = table.map(({ name, value, summary }) => ({ name, value, summary }));

/** The limits that were given; null for `none`. */
export function parseQuota(arguments_: Arguments): Partial<Quota> {
  const quota: Partial<Quota> = {};
  for (const { limit, name, parse } of table) {
    const given = special.get(arguments_.get(name) ?? "");
    const value = given === undefined ? parse(arguments_, name) : given;
    if (value !== undefined) quota[limit] = value;
  }
  return quota;
}
