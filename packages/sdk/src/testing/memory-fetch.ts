import {
  completeNetwork,
  type DecideNetworkRequestBody,
  errorBody,
  errorCodes,
  type NetworkBody,
  type OperationId,
  routes,
  SandboxError,
} from "@sandpiper/protocol";
import { MemoryFiles } from "./memory-files.ts";
import { decideRequest, listFlows, streamFlows, suggestRules } from "./memory-network.ts";
import type { MemoryState } from "./memory-state.ts";

interface Call {
  /** Its handler reads only the parameters of its own route. */
  readonly path: Readonly<Record<"id" | "checkpoint" | "process" | "volume" | "request" | "port", string>>;
  readonly query: URLSearchParams;
  readonly request: Request;
  readonly json: <Body = object>() => Promise<Body>;
}

type Handler = (state: MemoryState, call: Call) => unknown;

/** The in-memory server records no requests. */
const NO_ENTRIES = { isIntact: true, entries: 0, rotated: 0, firstId: null, lastId: null, findings: [] };

/** The operations of the in-memory server; all others are `unimplemented`. */
const handlers: Partial<Record<OperationId, Handler>> = {
  getHealth: () => ({ status: "ok", version: "memory" }),
  createSandbox: async (state, { json, request }) => state.create(await json(), request.headers.get("idempotency-key")),
  listSandboxes: (state, { query }) => {
    const labels = query.getAll("label").map((label) => label.split("="));
    const items = [...state.sandboxes.values()]
      .map(({ resource }) => resource)
      .filter(({ name, state }) => fits(query.get("name"), name) && fits(query.get("state"), state))
      .filter((resource) => labels.every(([key = "", value]) => fits(value ?? null, resource.labels[key] ?? null)))
      .reverse();
    const from = Number(query.get("cursor") ?? 0);
    const to = from + Number(query.get("limit") ?? 100);
    return { items: items.slice(from, to), nextCursor: to < items.length ? String(to) : null };
  },
  getSandbox: (state, { path }) => state.sandbox(path.id).resource,
  getSandboxHealth: (state, { path }) => {
    const { resource } = state.sandbox(path.id);
    return { healthy: resource.state === "ready", state: resource.state };
  },
  updateSandbox: async (state, { path, json }) => {
    const sandbox = state.sandbox(path.id);
    sandbox.resource = { ...sandbox.resource, ...(await json()) };
    state.emit("sandbox.updated", sandbox.resource.id);
    return sandbox.resource;
  },
  deleteSandbox: (state, { path, query }) => state.destroy(path.id, { keepsVolumes: query.get("volumes") === "keep" }),
  createCheckpoint: async (state, { path, json }) => state.checkpoints.create(path.id, await json()),
  listCheckpoints: (state, { path }) => ({ items: state.checkpoints.list(path.id) }),
  getCheckpoint: (state, { path }) => state.checkpoints.get(path.id, path.checkpoint),
  deleteCheckpoint: (state, { path }) => state.checkpoints.remove(path.id, path.checkpoint),
  forkSandbox: async (state, { path, json }) => ({ items: state.checkpoints.fork(path.id, await json()) }),
  pauseSandbox: (state, { path }) => state.pause(path.id),
  resumeSandbox: (state, { path }) => state.resume(path.id),
  rollbackSandbox: async (state, { path, json }) => {
    const { checkpoint } = await json<{ checkpoint?: string }>();
    return state.checkpoints.rollback(path.id, checkpoint);
  },
  stopSandbox: (state, { path }) => state.stopByOwner(path.id),
  startSandbox: (state, { path }) => state.resume(path.id),
  moveSandbox: (state, { path }) => state.move(path.id),
  rebuildSandbox: (state, { path }) => state.rebuild(path.id),
  pullImage: async (_, { json }) => {
    const { image } = await json<{ image: string }>();
    return new TextEncoder().encode(`event: done\ndata: ${JSON.stringify({ image })}\n\n`);
  },
  listCaches: () => ({ items: [] }),
  listMachines: () => ({ items: [] }),
  listVolumes: (state) => ({ items: [...state.volumes.values()] }),
  removeVolume: (state, { path }) => state.removeVolume(path.volume),
  listProcesses: (state, { path }) => ({
    items: [...state.sandbox(path.id).processes.values()].map(({ resource }) => resource),
  }),
  waitForProcess: (state, { path }) => {
    const process = state.process(path.id, path.process);
    return new Promise((resolve) => {
      const stop = process.listen(() => check());
      const check = () => {
        if (process.exit === undefined) return;
        stop();
        resolve(process.exit);
      };
      check();
    });
  },
  signalProcess: async (state, { path, json }) => {
    const { signal } = await json<{ signal: string }>();
    const isKill = /^(SIG)?KILL$/.test(signal);
    state.process(path.id, path.process).end(isKill ? 137 : 143, isKill ? "SIGKILL" : "SIGTERM");
  },
  resizeProcess: (state, { path }) => void state.process(path.id, path.process),
  deleteProcess: (state, { path }) => {
    state.process(path.id, path.process).end(137, "SIGKILL");
    state.sandbox(path.id).processes.delete(path.process);
  },
  readFile: (state, call) => {
    const from = Number(call.query.get("offset") ?? 0);
    const length = Number(call.query.get("lengthBytes") ?? Number.MAX_SAFE_INTEGER);
    return filesOf(state, call)
      .read(pathOf(call))
      .slice(from, from + length);
  },
  writeFile: async (state, call) => {
    const bytes = new Uint8Array(await call.request.arrayBuffer());
    filesOf(state, call).write(pathOf(call), bytes);
    return { sizeBytes: bytes.length };
  },
  removeFile: (state, call) => {
    const flag = (name: string) => call.query.get(name) === "true";
    filesOf(state, call).remove(pathOf(call), { recursive: flag("recursive"), missingOk: flag("missingOk") });
  },
  statFile: (state, call) => filesOf(state, call).stat(pathOf(call)),
  listFiles: (state, call) => ({ items: filesOf(state, call).list(pathOf(call)) }),
  moveFile: async (state, call) => {
    const { from, to } = await call.json<{ from: string; to: string }>();
    filesOf(state, call).move(from, to);
  },
  getNetworkLog: (state, { path, query, request }) => {
    const { network } = state.sandbox(path.id);
    const isFollowed = request.headers.get("accept") === "text/event-stream";
    return isFollowed ? streamFlows(network, query) : listFlows(network, query);
  },
  getNetworkSuggestion: (state, { path }) => suggestRules(state.sandbox(path.id).network),
  getSandboxNetwork: (state, { path }) => state.sandbox(path.id).resource.network,
  setSandboxNetwork: async (state, { path, json }) =>
    state.setNetwork(path.id, completeNetwork(await json<NetworkBody>())),
  decideNetworkRequest: async (state, { path, json }) => {
    const { resource, network } = state.sandbox(path.id);
    const { decision } = await json<DecideNetworkRequestBody>();
    const rule = decideRequest(network, path.request, decision);
    return state.setNetwork(path.id, { ...resource.network, rules: [rule, ...resource.network.rules] });
  },
  listNetworkRequests: (state, { path }) => ({ items: state.sandbox(path.id).network.requests }),
  listPorts: (state, { path }) => {
    state.sandbox(path.id);
    return { items: [] };
  },
  getPreview: (state, { path }) => previewOf(state, path),
  setPreview: async (state, { path, json }) => previewOf(state, path, await json<{ isPublic: boolean }>()),
  createLink: async (state, { path, json }) => {
    const body = await json<{ port: number; path?: string; expiresInMs?: number }>();
    const { url } = previewOf(state, { id: path.id, port: String(body.port) });
    const expiresAt = new Date(Date.now() + (body.expiresInMs ?? 3_600_000)).toISOString();
    return { port: body.port, url: `${url.slice(0, -1)}${body.path ?? "/"}?sandpiper_link=memory`, expiresAt };
  },
  revokeLinks: (state, { path }) => void state.sandbox(path.id),
  listNodes: (state) => ({ items: [state.node] }),
  listAudit: () => ({ items: [] }),
  verifyAudit: () => NO_ENTRIES,
  listEvents: (state, { query }) => ({ items: query.get("replay") === "true" ? state.states() : state.events }),
};

/** Nothing listens there: it shows only what a client sends and gets. */
function previewOf(state: MemoryState, path: Pick<Call["path"], "id" | "port">, { isPublic = false } = {}) {
  const { id } = state.sandbox(path.id).resource;
  return { port: Number(path.port), url: `http://${path.port}-${id}.localhost/`, isPublic, trafficToken: "memory" };
}

const patterns = Object.entries(routes).map(([operation, { method, path }]) => ({
  operation: operation as OperationId,
  method,
  pattern: new RegExp(`^${path.replace(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`),
}));

/** The fetch of the in-memory server. */
export function createMemoryFetch(state: MemoryState): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    try {
      return await answer(state, request);
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      return Response.json(errorBody(error, "memory"), { status: errorCodes[error.code].httpStatus });
    }
  };
}

async function answer(state: MemoryState, request: Request): Promise<Response> {
  const { pathname, searchParams: query } = new URL(request.url);
  const route = patterns.find(({ method, pattern }) => method === request.method && pattern.test(pathname));
  if (route === undefined) throw new SandboxError("no_such_route", { message: pathname });
  const { access, status } = routes[route.operation];
  const groups = Object.entries(route.pattern.exec(pathname)?.groups ?? {});
  const path = Object.fromEntries(groups.map(([name, value]) => [name, decodeURIComponent(value)]));
  if (access !== "anyone") requireCredential(state, request.headers.get("authorization")?.replace(/^Bearer /, ""));
  const handler = handlers[route.operation];
  if (handler === undefined) throw unimplemented(route.operation);
  const result = await handler(state, {
    path: path as Call["path"],
    query,
    request,
    json: <Body>() => request.json() as Promise<Body>,
  });
  if (status === 204) return new Response(null, { status });
  return result instanceof Uint8Array
    ? new Response(result as Uint8Array<ArrayBuffer>, { status })
    : Response.json(result, { status });
}

export function requireCredential(state: MemoryState, credential: string | undefined): void {
  if (credential === state.apiKey) return;
  if ([...state.sandboxes.values()].some(({ resource }) => resource.token === credential)) return;
  throw new SandboxError("bad_credential", {
    message: "unknown credential",
    hint: "create the client with server.clientOptions",
  });
}

function unimplemented(operation: string): SandboxError {
  return new SandboxError("not_in_memory", { message: `the in-memory server has no ${operation}` });
}

function filesOf(state: MemoryState, { path }: Call): MemoryFiles {
  return new MemoryFiles(state.readySandbox(path.id).files, (kind, file) => state.fileChanged(path.id, kind, file));
}

function pathOf({ query }: Call): string {
  return query.get("path") ?? "";
}

function fits(wanted: string | null, actual: string | null): boolean {
  return wanted === null || wanted === actual;
}
