import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "@sandpiper/core";
import type { Logger } from "pino";
import type { AuditSink } from "../audit/audit-trail.ts";
import type { MomentaryUsage } from "../auth/momentary-usage.ts";
import type { Authenticator } from "../auth/principal.ts";
import type { Peers } from "../forward/peers.ts";
import type { SocketRelayOptions } from "../forward/socket-relay.ts";
import type { Locator } from "../handoff/locator.ts";
import type { Callers } from "../http/callers.ts";
import type { Ownership } from "../ownership/ownership.ts";
import type { EventFeed } from "../sandboxes/event-feed.ts";
import type { NodePhase } from "../sandboxes/node-phase.ts";
import type { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import type { SandboxService } from "../sandboxes/sandbox-service.ts";

/** Relays streams to other nodes. */
interface RelayDependencies extends Pick<SocketRelayOptions, "proof" | "silenceMs"> {
  readonly peers: Pick<Peers, "isForwardedUpgrade">;
}

/** The parts of the node that WebSockets use. */
export interface SocketDependencies {
  readonly sandboxes: Pick<SandboxService, "create">;
  readonly access: SandboxAccess;
  readonly locator: Locator;
  readonly ownership: Pick<Ownership, "setAttached">;
  /** Undefined on a standalone node, which relays no streams. */
  readonly relay?: RelayDependencies | undefined;
  readonly authenticator: Authenticator;
  readonly callers: Callers;
  readonly momentary: Pick<MomentaryUsage, "take">;
  readonly feed: EventFeed;
  readonly logger: Logger;
  /** Without it, nothing is audited. */
  readonly audit?: AuditSink | undefined;
  readonly phase: NodePhase;
  /** Origins of web pages that may connect, such as "https://console.example.com"; none by default. */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Serves a request to switch protocols in place of the node's own sockets, if it returns true. */
  readonly intercept?: ((request: IncomingMessage, socket: Duplex, head: Buffer) => boolean) | undefined;
  readonly clock?: Clock | undefined;
  readonly randomUuid?: (() => string) | undefined;
}
