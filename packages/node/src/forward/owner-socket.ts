import type { IncomingMessage } from "node:http";
import { type Clock, SandboxError } from "@sandpiper/core";
import { errorBodySchema, SOCKET_PROTOCOL } from "@sandpiper/protocol";
import { WebSocket } from "ws";
import { NODE_PROOF_HEADER, type NodeProof } from "../cluster/node-proof.ts";
import { ownerUnreachable } from "../cluster/peer-errors.ts";

const SOCKET_PATH = "/v1/socket";

/** Limit for data that waits for a slow node; above it, nothing is read from the client. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const CONNECT_TIMEOUT_MS = 5000;
const MAX_REFUSAL_BYTES = 64 * 1024;

/** The client whose streams are relayed. */
export interface RelayClient {
  /** Resolves when the connection has ended; never rejects. */
  readonly closed: Promise<void>;
  /** Sends at once. */
  send(message: object): unknown;
  /** Sends when there is room; returns undefined if that was at once. */
  deliver(make: () => Uint8Array | string | undefined): Promise<void> | undefined;
  /** Pauses reading from the client until all holds are disposed. */
  holdBack(): Disposable;
  close(code: number, reason: string): void;
}

export interface OwnerSocketOptions {
  readonly url: string;
  /** The client's credential, which the other node checks again. */
  readonly credential: string;
  readonly requestId: string;
  readonly client: RelayClient;
  readonly proof: NodeProof;
  readonly clock: Clock;
  /** The connection is given up after this long without a sign of life. */
  readonly silenceMs: number;
  /** Called with each text message of the node, after it was relayed. */
  readonly onText: (text: string) => void;
  /** Called once. `refusal` is set if the connection was never open. */
  readonly onClose: (end: { readonly code: number; readonly reason: string; readonly refusal?: SandboxError }) => void;
}

/** A connection to a node that owns some of a client's sandboxes. Relays messages unchanged. */
export class OwnerSocket {
  readonly #options: OwnerSocketOptions;
  readonly #webSocket: WebSocket;
  /** Messages that wait for the connection to open. */
  readonly #waiting: (string | Uint8Array)[] = [];
  #waitingBytes = 0;
  #hold: Disposable | undefined;
  #refusal: SandboxError | undefined;
  #wasOpen = false;
  #heard = true;
  #stopBeat = () => {};

  constructor(options: OwnerSocketOptions) {
    this.#options = options;
    const { url, credential, requestId, proof } = options;
    this.#webSocket = new WebSocket(`${url.replace(/^http/, "ws")}${SOCKET_PATH}`, SOCKET_PROTOCOL, {
      headers: {
        authorization: `Bearer ${credential}`,
        "x-request-id": requestId,
        [NODE_PROOF_HEADER]: proof.sign({ method: "GET", path: SOCKET_PATH }, url),
      },
      perMessageDeflate: false,
      handshakeTimeout: CONNECT_TIMEOUT_MS,
    });
    this.#listen();
  }

  send(data: string | Uint8Array): void {
    if (this.#webSocket.readyState === WebSocket.OPEN) this.#post(data);
    else {
      this.#waiting.push(data);
      this.#waitingBytes += data.length;
    }
    if (this.#backlogBytes > MAX_WAITING_BYTES) this.#hold ??= this.#options.client.holdBack();
  }

  terminate(): void {
    this.#webSocket.terminate();
  }

  get #backlogBytes(): number {
    return this.#waitingBytes + this.#webSocket.bufferedAmount;
  }

  #listen(): void {
    const webSocket = this.#webSocket;
    webSocket.once("open", () => {
      this.#wasOpen = true;
      this.#waitingBytes = 0;
      for (const data of this.#waiting.splice(0)) this.#post(data);
      this.#beat();
    });
    webSocket.on("message", (data, isBinary) => this.#received(data as Buffer, isBinary));
    webSocket.on("pong", () => {
      this.#heard = true;
    });
    webSocket.once("unexpected-response", (_, response) => this.#refused(response));
    // A "close" follows.
    webSocket.on("error", (error) => {
      this.#refusal ??= ownerUnreachable(this.#options.url, error);
    });
    webSocket.once("close", (code, reason) => {
      this.#stopBeat();
      this.#resumeClient();
      const refusal = this.#wasOpen ? undefined : (this.#refusal ?? ownerUnreachable(this.#options.url));
      this.#options.onClose({ code, reason: reason.toString(), ...(refusal && { refusal }) });
    });
  }

  #received(data: Buffer, isBinary: boolean): void {
    this.#heard = true;
    const message = isBinary ? data : data.toString();
    const room = this.#options.client.deliver(() => message);
    if (typeof message === "string") this.#options.onText(message);
    if (room === undefined) return;
    this.#webSocket.pause();
    room.then(() => {
      this.#heard = true;
      this.#webSocket.resume();
    });
  }

  #post(data: string | Uint8Array): void {
    this.#webSocket.send(data, () => {
      if (this.#backlogBytes <= MAX_WAITING_BYTES / 2) this.#resumeClient();
    });
  }

  #resumeClient(): void {
    this.#hold?.[Symbol.dispose]();
    this.#hold = undefined;
  }

  /** Pings the node, and gives it up if it is silent. While reading is paused, silence means nothing. */
  #beat(): void {
    const { clock, silenceMs } = this.#options;
    if (!this.#heard && !this.#webSocket.isPaused) {
      this.#webSocket.terminate();
      return;
    }
    this.#heard = false;
    this.#webSocket.ping();
    this.#stopBeat = clock.schedule(silenceMs, () => this.#beat());
  }

  /** Relays the node's refusal to the client, unless it is about the node itself. */
  async #refused(response: IncomingMessage): Promise<void> {
    let text = "";
    try {
      for await (const piece of response.setEncoding("utf8")) {
        text += piece;
        if (text.length > MAX_REFUSAL_BYTES) break;
      }
      const { code, reason, message, hint, details } = errorBodySchema.parse(JSON.parse(text));
      if (code !== "unavailable") this.#refusal = SandboxError.fromFields({ code, reason, message, hint, details });
    } catch {
      // Not a node's answer: another program listens at its address.
    }
    this.#webSocket.terminate();
  }
}
