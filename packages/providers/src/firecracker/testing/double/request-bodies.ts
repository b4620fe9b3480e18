import { Fault } from "./faults.ts";

type Check = (value: unknown) => boolean;

const text: Check = (value) => typeof value === "string" && value.length > 0;
const flag: Check = (value) => typeof value === "boolean";
const among =
  (...values: string[]): Check =>
  (value) =>
    values.includes(String(value));
const integer =
  (least: number, most = Number.MAX_SAFE_INTEGER): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
const object: Check = (value) => typeof value === "object" && value !== null;

/** The published fields of each request; `!` marks required ones. */
const FIELDS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  "PUT /machine-config": {
    "vcpu_count!": integer(1, 32),
    "mem_size_mib!": integer(1),
    smt: flag,
    track_dirty_pages: flag,
    cpu_template: text,
    huge_pages: among("None", "2M"),
  },
  "PUT /boot-source": { "kernel_image_path!": text, initrd_path: text, boot_args: text },
  "PUT /drives/": {
    "drive_id!": text,
    "is_root_device!": flag,
    path_on_host: text,
    is_read_only: flag,
    partuuid: text,
    cache_type: among("Unsafe", "Writeback"),
    io_engine: among("Sync", "Async"),
    rate_limiter: object,
    socket: text,
  },
  "PUT /vsock": { "guest_cid!": integer(0, 2 ** 32 - 1), "uds_path!": text, vsock_id: text },
  "PUT /entropy": { rate_limiter: object },
  "PUT /actions": { "action_type!": among("FlushMetrics", "InstanceStart", "SendCtrlAltDel") },
  "PATCH /vm": { "state!": among("Paused", "Resumed") },
  "PUT /snapshot/create": {
    "mem_file_path!": text,
    "snapshot_path!": text,
    snapshot_type: among("Full", "Diff"),
  },
  "PUT /snapshot/load": {
    "snapshot_path!": text,
    mem_file_path: text,
    mem_backend: object,
    enable_diff_snapshots: flag,
    track_dirty_pages: flag,
    resume_vm: flag,
    network_overrides: object,
  },
};

/** The route of a request without the ids in its path; refuses unknown routes. */
export function requestKind(method: string, path: string): string {
  const kind = `${method} ${path.replace(/^\/drives\/[A-Za-z0-9_]+$/, "/drives/")}`;
  if (kind === "GET /" || kind === "GET /version" || kind === "GET /machine-config" || kind in FIELDS) return kind;
  throw new Fault(`Invalid request method and/or path: ${method} ${path}.`);
}

/** Checks a body like Firecracker: only known fields, all required ones, each of its type. */
export function parseBody(kind: string, body: string): Readonly<Record<string, unknown>> {
  if (body === "") throw new Fault(`Empty ${kind.split(" ")[0]} request.`);
  const fields = FIELDS[kind] ?? {};
  const known = new Map(Object.entries(fields).map(([name, check]) => [name.replace("!", ""), check]));
  const value = parseJson(body);
  for (const [name, content] of Object.entries(value)) {
    const check = known.get(name);
    if (check === undefined) throw malformed(`unknown field \`${name}\``);
    if (!check(content)) throw malformed(`invalid value for \`${name}\``);
  }
  for (const name of Object.keys(fields)) {
    if (name.endsWith("!") && !(name.slice(0, -1) in value)) throw malformed(`missing field \`${name.slice(0, -1)}\``);
  }
  if (kind === "PUT /snapshot/load" && "mem_backend" in value === "mem_file_path" in value) {
    throw new Fault("Bad request: exactly one of `mem_backend` and `mem_file_path` must be specified.");
  }
  return value;
}

function parseJson(body: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(body);
  } catch {
    throw malformed("expected value at line 1 column 1");
  }
}

function malformed(why: string): Fault {
  return new Fault(`An error occurred when deserializing the json body of a request: ${why}.`);
}
