import { randomUUID } from "node:crypto";
import type { Server as HttpServer, IncomingMessage } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Duplex } from "node:stream";
import { SandboxError, systemClock } from "@sandpiper/core";
import { MAX_SOCKET_MESSAGE_BYTES } from "@sandpiper/protocol";
import { WebSocketServer } from "ws";
import { requireAccess } from "../auth/access.ts";
import { CredentialWatch } from "../auth/credential-watch.ts";
import type { Principal } from "../auth/principal.ts";
import { publicError } from "../http/error-response.ts";
import { requireOrigin } from "../http/require-origin.ts";
import { attachSession } from "../session/attach-session.ts";
import { createSession } from "../session/create-session.ts";
import { SessionRegistry } from "../session/session-registry.ts";
import { closeCodes, MessageSocket, startHeartbeat } from "../socket/message-socket.ts";
import { SocketAudit } from "../socket/socket-audit.ts";
import { SocketConnection } from "../socket/socket-connection.ts";
import type { SocketDependencies } from "../socket/socket-dependencies.ts";
import { chooseSubprotocol, credentialOf, refuseUpgrade, type SocketRoute, socketRoute } from "./upgrade-request.ts";

/** How long clients may take to close their connection when the node stops. */
const CLOSE_MS = 1000;

export interface AttachedSockets {
  /** Closes all connections and accepts no more. */
  close(): Promise<void>;
}

/** Serves the WebSockets `/v1/socket`, `/create` and `/attach/<id>` on an HTTP server. */
export function attachSockets(server: HttpServer | HttpsServer, dependencies: SocketDependencies): AttachedSockets {
  const {
    authenticator,
    callers,
    momentary,
    phase,
    corsOrigins = [],
    clock = systemClock,
    randomUuid = randomUUID,
  } = dependencies;
  const acceptor = createAcceptor();
  const sessions = new SessionRegistry();
  const credentials = new CredentialWatch(authenticator, clock);
  const open = new Set<MessageSocket>();
  let isClosing = false;

  /** Makes every check that can refuse a client, before the connection is accepted. */
  const admit = async (request: IncomingMessage, requestId: string) => {
    const route = callers.countingFailure(() => socketRoute(request.url ?? ""), request);
    const address = request.socket.remoteAddress;
    let principal: Principal | undefined;
    try {
      requireOrigin({ origin: request.headers.origin, host: request.headers.host }, corsOrigins);
      const credential = credentialOf(request);
      const { relay } = dependencies;
      const isForwarded = callers.countingFailure(() => relay?.peers.isForwardedUpgrade(request) ?? false, request);
      principal = await callers.authenticate(credential, request);
      if (!isForwarded) callers.count(principal);
      if (route.name === "create") requireAccess(principal, "sandboxes", { readOnly: false });
      if (route.name === "socket") requireAccess(principal, "sandbox", { readOnly: true });
      if (route.name === "attach") requireAccess(principal, "sandbox", { readOnly: false });
      const refusesNew = route.name === "create" && phase.isDraining;
      if (isClosing || phase.isStopping || refusesNew) throw stopping();
      const relays = relay !== undefined && !isForwarded;
      const counted = momentary.take(principal, "sockets");
      return { route, principal, requestId, address, credential, relays, counted };
    } catch (thrown) {
      const audit = new SocketAudit({ sink: dependencies.audit, principal, requestId, address });
      await audit.note(route.name === "create" ? "createSandbox" : "startProcess", null, SandboxError.from(thrown));
      throw thrown;
    }
  };

  const upgrade = async (request: IncomingMessage, raw: Duplex, head: Buffer) => {
    const requestId = randomUuid();
    // Without a listener, a connection reset would end the node.
    raw.on("error", () => {});
    try {
      const { credential, relays, counted, ...admitted } = await admit(request, requestId);
      // Also after a handshake that fails.
      raw.once("close", () => counted[Symbol.dispose]());
      if (raw.destroyed) counted[Symbol.dispose]();
      acceptor.handleUpgrade(request, raw, head, (webSocket) => {
        const socket = new MessageSocket(webSocket, raw);
        open.add(socket);
        socket.closed.then(() => open.delete(socket));
        startHeartbeat(socket, { clock });
        const watched = credentials.watch(credential, ({ reason }) => socket.close(closeCodes.policy, reason));
        socket.closed.then(() => watched[Symbol.dispose]());
        serve(socket, { ...admitted, credential: relays ? credential : undefined });
      });
    } catch (thrown) {
      refuseUpgrade(raw, publicError(thrown), requestId);
    }
  };

  const serve = (socket: MessageSocket, { route, principal, requestId, address, credential }: Admission) => {
    const logger = dependencies.logger.child({ requestId, socket: route.name });
    const audit = new SocketAudit({ sink: dependencies.audit, principal, requestId, address });
    logger.debug("client connected");
    socket.closed.then(() => logger.debug("client disconnected"));
    const context = { socket, principal, dependencies, sessions, logger, audit };
    if (route.name === "create") createSession(context, route.query);
    else if (route.name === "attach") attachSession(context, route);
    else new SocketConnection({ socket, principal, dependencies, logger, requestId, audit, credential });
  };

  acceptor.on("wsClientError", ({ message }, raw) => refuseUpgrade(raw, badHandshake(message), randomUuid()));
  server.on("upgrade", (request, raw, head) => {
    if (!dependencies.intercept?.(request, raw, head)) upgrade(request, raw, head);
  });
  return {
    async close() {
      isClosing = true;
      const leaving = [...open];
      for (const socket of leaving) socket.close(closeCodes.goingAway, "the node is stopping");
      const cancel = clock.schedule(CLOSE_MS, () => {
        for (const socket of leaving) socket.terminate();
      });
      await Promise.all(leaving.map((socket) => socket.closed));
      cancel();
    },
  };
}

interface Admission {
  readonly route: SocketRoute;
  readonly principal: Principal;
  readonly requestId: string;
  readonly address: string | undefined;
  /** Authenticates relayed streams; undefined if the node does not relay them. */
  readonly credential: string | undefined;
}

function createAcceptor(): WebSocketServer {
  return new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_SOCKET_MESSAGE_BYTES,
    handleProtocols: chooseSubprotocol,
  });
}

function badHandshake(problem: string): SandboxError {
  return new SandboxError("malformed_request", {
    message: `the WebSocket handshake is invalid: ${problem}`,
    hint: "connect with a WebSocket client of version 13",
  });
}

function stopping(): SandboxError {
  return new SandboxError("node_stopping", {
    message: "the node is stopping and accepts no new connections",
    hint: "connect again when it has restarted",
  });
}
