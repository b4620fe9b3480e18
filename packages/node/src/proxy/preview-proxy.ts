import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { SandboxError } from "@sandpiper/core";
import { CredentialWatch } from "../auth/credential-watch.ts";
import { hideStore } from "../auth/hide-store.ts";
import { movedOn } from "../cluster/peer-errors.ts";
import type { Location, NodeLocation } from "../handoff/locator.ts";
import { publicError, statusOf } from "../http/error-response.ts";
import type { Exchange } from "../http/request-log.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { GuestAgent } from "./guest-agent.ts";
import { guestUpstream } from "./guest-upstream.ts";
import { nodeUpstream } from "./node-upstream.ts";
import { OpenVisits } from "./open-visits.ts";
import { contextOf, type VisitContext } from "./preview-context.ts";
import { linkCookie, type PreviewCredentials, readCredentials } from "./preview-credentials.ts";
import type { PreviewDependencies } from "./preview-dependencies.ts";
import { type Admission, PreviewGate, type Visitor } from "./preview-gate.ts";
import { answerFailure } from "./preview-page.ts";
import { relay, type UpgradingClient, type Upstream, upgradeResponse } from "./upstream.ts";

const SAFE = /^(GET|HEAD|OPTIONS)$/;

/** One request for a preview. */
interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly expectsContinue: boolean;
  readonly upgrade?: UpgradingClient | undefined;
  readonly requestId: string;
  readonly startedAtMs: number;
  readonly exchange: Exchange;
  /** What lasts until the visit has ended. */
  readonly held: DisposableStack;
}

/** Serves previews: finds the sandbox, decides who may use it, wakes it, and relays requests to its ports. */
export class PreviewProxy implements Disposable {
  readonly #deps: PreviewDependencies;
  readonly #gate: PreviewGate;
  readonly #visits: OpenVisits;
  readonly #agents = new WeakMap<LiveSandbox, GuestAgent>();

  constructor(deps: PreviewDependencies) {
    this.#deps = deps;
    this.#gate = new PreviewGate(deps);
    const credentials = new CredentialWatch(deps.authenticator, deps.clock);
    this.#visits = new OpenVisits({ ...deps, credentials });
  }

  /** Serves a request if it is for a preview; false for any other. */
  request(request: IncomingMessage, response: ServerResponse, { expectsContinue = false } = {}): boolean {
    return this.#take(request, () => ({ request, response, expectsContinue }));
  }

  /** Serves a WebSocket if it is for a preview; false for any other. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    return this.#take(request, () => {
      // Without a listener, a connection reset would end the node.
      socket.on("error", () => {});
      const response = upgradeResponse(request, socket);
      return { request, response, expectsContinue: false, upgrade: { socket, head } };
    });
  }

  cutSockets(): void {
    this.#visits.cutSockets();
  }

  [Symbol.dispose](): void {
    this.#visits[Symbol.dispose]();
  }

  #take(
    request: IncomingMessage,
    begin: () => Pick<Visit, "request" | "response" | "expectsContinue" | "upgrade">,
  ): boolean {
    const { previews, peers, callers, clock, randomUuid = randomUUID } = this.#deps;
    let context: VisitContext | undefined;
    let refusal: unknown;
    try {
      const options = { addresses: previews.addresses, callers, peers };
      context = callers.countingFailure(() => contextOf(request, options), request);
      if (context === undefined) return false;
    } catch (thrown) {
      refusal = thrown;
    }
    const isAudited = !SAFE.test(request.method ?? "") || request.headers.upgrade !== undefined;
    const visit: Visit = {
      ...begin(),
      requestId: randomUuid(),
      startedAtMs: clock.monotonicMs(),
      exchange: { operation: "usePreview", isAudited, sandboxId: context?.address.sandboxId ?? null },
      held: new DisposableStack(),
    };
    this.#serve(visit, context, refusal);
    return true;
  }

  async #serve(visit: Visit, context: VisitContext | undefined, refusal: unknown): Promise<void> {
    const { request, response, upgrade, requestId, exchange, held } = visit;
    const gone = new AbortController();
    const end = () => {
      gone.abort();
      held.dispose();
    };
    (upgrade?.socket ?? response).once("close", end);
    try {
      if (context === undefined) throw refusal;
      await this.#answer(visit, context, gone.signal);
    } catch (thrown) {
      const failure = gone.signal.aborted ? SandboxError.from(thrown, "canceled") : publicError(thrown);
      const error = hideStore(failure, exchange.principal);
      await this.#record(visit, statusOf(error), failure);
      answerFailure(request, response, { error, requestId });
    }
  }

  async #answer(visit: Visit, context: VisitContext, signal: AbortSignal): Promise<void> {
    const { request, upgrade, exchange } = visit;
    const { address, isForwarded } = context;
    const { callers, locator, phase, peers } = this.#deps;
    requireSupported(request, context, upgrade !== undefined);
    const given = readCredentials(request.headers, address.path);
    const visitor = await this.#gate.identify(address, given, request);
    if (visitor.isCaller) exchange.principal = visitor.principal;
    if (!isForwarded && visitor.isCaller) callers.count(visitor.principal);
    if (!isForwarded && !visitor.isCaller) callers.countAnonymous(request);
    if (phase.isStopping) throw stopping();
    const { principal } = visitor;
    const { sandboxId } = address;
    let location = await locator.locate(principal, sandboxId, { readOnly: false });
    for (;;) {
      if (location.kind === "node" && !isForwarded && peers !== undefined) {
        return await this.#relayTo(this.#owner(visit, context, location), visit);
      }
      if (location.kind === "node" || (location.kind === "unreachable" && isForwarded)) throw movedOn(sandboxId);
      const admission = this.#admit(visit, context, { given, visitor, location });
      if (admission.link !== undefined && upgrade === undefined && isPageVisit(request)) {
        return await this.#redirect(visit, context, { path: given.path, ...admission });
      }
      location = await locator.claim(principal, sandboxId, { purpose: "use", readOnly: false, location, signal });
      if (location.kind === "node") continue;
      const live =
        (location.kind === "here" && location.live) ||
        this.#deps.access.open(principal, sandboxId, { readOnly: false });
      return await this.#enter(visit, context, { live, given, admission });
    }
  }

  #admit(visit: Visit, { address }: VisitContext, { given, visitor, location }: Found): Admission {
    const record = this.#recordOf(location, address.sandboxId);
    const admission = this.#gate.admit(address, given, { ...visitor, record });
    const { principal } = visitor;
    visit.exchange.principal = principal;
    const measure = visit.upgrade === undefined ? "requests" : "sockets";
    // Nothing ends the count of a request whose caller has left.
    if (!visit.held.disposed) visit.held.use(this.#deps.momentary.take(record ?? principal, measure));
    return admission;
  }

  #recordOf(location: Location, id: VisitContext["address"]["sandboxId"]): SandboxRecord | undefined {
    if (location.kind === "here") return location.live?.record ?? this.#deps.registry.record(id);
    return location.kind === "at_rest" || location.kind === "unreachable" ? location.saved.record : undefined;
  }

  /** Keeps the link in a cookie of the preview's own origin, and out of the page's address. */
  async #redirect(visit: Visit, { address, origin }: VisitContext, link: LinkVisit): Promise<void> {
    const { response, requestId } = visit;
    const path = `${address.prefix}/`;
    const maxAgeMs = (link.expiresAtMs ?? 0) - this.#deps.clock.now().getTime();
    await this.#record(visit, 302);
    response.writeHead(302, {
      location: `${origin}${address.prefix}${link.path}`,
      "set-cookie": linkCookie(link.link ?? "", { isSecure: origin.startsWith("https:"), path, maxAgeMs }),
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-request-id": requestId,
    });
    response.end();
  }

  async #enter(visit: Visit, context: VisitContext, { live, given, admission }: Entry): Promise<void> {
    const { request, response, upgrade, held } = visit;
    if (held.disposed) return;
    held.use(live.hold("preview"));
    const cut = () => void (upgrade?.socket ?? response).destroy();
    held.use(
      this.#visits.add({ id: live.id, admission, credential: given.credential, isSocket: upgrade !== undefined, cut }),
    );
    const agent = this.#agentOf(live);
    const listening = async () => (await live.ports()).map(({ port }) => port);
    await this.#relayTo(guestUpstream({ live, agent, context, request, path: given.path, listening }), visit);
  }

  #owner(visit: Visit, context: VisitContext, owner: NodeLocation): Upstream {
    const { peers } = this.#deps;
    if (peers === undefined) throw movedOn(context.address.sandboxId);
    // The owner measures and audits the request.
    visit.exchange.isForwarded = true;
    return nodeUpstream({ peers, owner, context, request: visit.request });
  }

  async #relayTo(upstream: Upstream, visit: Visit): Promise<void> {
    await relay(upstream, {
      exchange: visit,
      upgrade: visit.upgrade,
      onAnswer: (status) => this.#record(visit, status),
    });
  }

  #agentOf(live: LiveSandbox): GuestAgent {
    const { clock } = this.#deps;
    const known = this.#agents.get(live);
    const agent = known ?? new GuestAgent({ sandboxId: live.id, clock, dial: (port) => live.dial(port) });
    if (known === undefined) this.#agents.set(live, agent);
    return agent;
  }

  async #record(visit: Visit, status: number, failure?: SandboxError): Promise<void> {
    const { exchange, requestId, startedAtMs, request } = visit;
    const context = { requestId, address: request.socket.remoteAddress };
    await this.#deps.log.record(exchange, { context, status, startedAtMs, failure });
  }
}

interface Found {
  readonly given: PreviewCredentials;
  readonly visitor: Visitor;
  readonly location: Location;
}

interface Entry {
  readonly live: LiveSandbox;
  readonly given: PreviewCredentials;
  readonly admission: Admission;
}

interface LinkVisit extends Admission {
  readonly path: string;
}

/** A browser that opens a page keeps cookies; programs, and requests with a body, are served at once. */
function isPageVisit({ method, headers }: IncomingMessage): boolean {
  return /^(GET|HEAD)$/.test(method ?? "") && /\btext\/html\b/.test(headers.accept ?? "");
}

/** A service worker would outlive the page's sandbox, and another protocol could carry requests that nobody checks. */
function requireSupported(request: IncomingMessage, { address }: VisitContext, isUpgrade: boolean): void {
  if (address.mode === "path" && request.headers["service-worker"] !== undefined) {
    throw new SandboxError("service_worker_refused", { message: "this preview may not install a service worker" });
  }
  if (isUpgrade && request.headers.upgrade?.toLowerCase() !== "websocket") {
    throw new SandboxError("malformed_request", {
      message: "a preview can only switch to the WebSocket protocol",
      hint: "send the request without the Upgrade header",
    });
  }
}

function stopping(): SandboxError {
  return new SandboxError("node_stopping", {
    message: "the node is stopping and accepts no requests",
    hint: "retry when it has restarted; its sandboxes keep running",
  });
}
