import { type Clock, SandboxError } from "@sandpiper/core";
import {
  type AgentMethod,
  agentMethods,
  type CallId,
  encodeFrame,
  type Frame,
  FrameDecoder,
  type FrameSink,
} from "@sandpiper/protocol";
import { type Handler, isAnsweredWhileQuiesced, type MockAgent } from "./agent.ts";
import { fileHandlers } from "./agent-files.ts";
import { processHandlers } from "./agent-processes.ts";
import { systemHandlers } from "./agent-system.ts";
import { MockCall } from "./call.ts";
import type { MockChannel, MockPeer } from "./channel.ts";
import type { MockFaults } from "./faults.ts";

const handlers: Readonly<Record<AgentMethod, Handler>> = { ...systemHandlers, ...processHandlers, ...fileHandlers };

const TORN_FRAME = new TextEncoder().encode('{"jsonrpc":"2.0","method":"stream.data","params":{},"bytes":3}\nab \n');

/** One caller on one channel: its calls, and the faults of their answers. */
export class MockSession implements MockPeer, FrameSink {
  readonly #agent: MockAgent;
  readonly #channel: MockChannel;
  readonly #clock: Clock;
  readonly #faults: MockFaults;
  readonly #decoder = new FrameDecoder(this);
  readonly #calls = new Map<CallId, MockCall>();
  #heldAnswers: (() => void)[] = [];
  /** Messages that wait until the agent is thawed. */
  #frozen: (() => void)[] = [];

  constructor(
    agent: MockAgent,
    channel: MockChannel,
    environment: { readonly clock: Clock; readonly faults: MockFaults },
  ) {
    this.#agent = agent;
    this.#channel = channel;
    this.#clock = environment.clock;
    this.#faults = environment.faults;
    channel.connectPeer(this);
    agent.thawListeners.add(this.#thaw);
    if (this.#faults.staleBytes !== undefined) channel.send(this.#faults.staleBytes);
  }

  receive(chunk: Uint8Array): void {
    this.#decoder.push(chunk);
  }

  disconnected(): void {
    this.#agent.thawListeners.delete(this.#thaw);
    for (const call of this.#calls.values()) call.cancel();
  }

  fault(reason: string): void {
    const error = { code: -32700, message: reason, data: { code: "invalid_argument", reason } };
    this.#sendNow({ jsonrpc: "2.0", id: null, error });
  }

  frame({ message, attachment }: Frame): void {
    const params = (message["params"] ?? {}) as Record<string, unknown>;
    if (message["id"] !== undefined) this.#begin(message, attachment);
    else this.#notified(String(message["method"]), this.#calls.get(params["call"] as CallId), params, attachment);
  }

  #notified(
    method: string,
    call: MockCall | undefined,
    params: Record<string, unknown>,
    attachment: Uint8Array | undefined,
  ): void {
    if (call === undefined) return;
    if (method === "cancel") call.cancel();
    else if (method === "stream.credit") call.grant(Number(params["bytes"]));
    else if (method === "stream.end") call.ended();
    else if (method === "stream.data" && attachment !== undefined) call.receive(attachment);
  }

  #begin(message: Record<string, unknown>, attachment: Uint8Array | undefined): void {
    const id = message["id"] as CallId;
    const method = String(message["method"]);
    const call = new MockCall({
      id,
      method,
      params: message["params"] ?? {},
      attachment: attachment ?? new Uint8Array(0),
      send: (notification, bytes) => this.#send(notification, bytes),
    });
    this.#calls.set(id, call);
    // A refusal is sent at once, too.
    const isUrgent = this.#agent.isQuiesced || isAnsweredWhileQuiesced(method);
    const answer = (outcome: object) => this.#answer(call, { jsonrpc: "2.0", id, ...outcome }, isUrgent);
    this.#run(call).then(
      (result) => answer({ result }),
      (thrown) => answer({ error: rpcError(SandboxError.from(thrown)) }),
    );
  }

  async #run(call: MockCall): Promise<object> {
    if (!Object.hasOwn(agentMethods, call.method)) {
      throw new SandboxError("unknown_method", { message: `method ${call.method} not found` });
    }
    const method = call.method as AgentMethod;
    const parsed = agentMethods[method].params.safeParse(call.params);
    if (!parsed.success) {
      const message = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ");
      throw new SandboxError("bad_params", { message });
    }
    if (method === "hello") {
      for (const other of this.#calls.values()) if (other !== call) other.cancel();
      this.#frozen = [];
    }
    if (this.#agent.isQuiesced && !isAnsweredWhileQuiesced(method)) {
      throw new SandboxError("quiesced", { message: `${method} was refused: the sandbox is quiesced` });
    }
    return handlers[method](this.#agent, parsed.data, call);
  }

  #answer(call: MockCall, message: object, isUrgent: boolean): void {
    this.#calls.delete(call.id);
    if (this.#faults.unanswered?.includes(call.method)) return;
    const send = isUrgent ? () => this.#sendNow(message) : () => this.#send(message);
    const delayMs = this.#faults.answerDelayMs?.(call.method) ?? 0;
    if (delayMs > 0) this.#clock.schedule(delayMs, () => this.#sendAnswer(send));
    else this.#sendAnswer(send);
  }

  #sendAnswer(send: () => void): void {
    if (!this.#faults.isOrderReversed) {
      this.#disturb();
      send();
      return;
    }
    if (this.#heldAnswers.length === 0) {
      this.#clock.schedule(0, () => {
        const held = this.#heldAnswers.reverse();
        this.#heldAnswers = [];
        for (const send of held) send();
      });
    }
    this.#heldAnswers.push(send);
  }

  #disturb(): void {
    if (this.#faults.garbage !== undefined) this.#channel.send(this.#faults.garbage);
    if (this.#faults.hasTornFrames) this.#channel.send(TORN_FRAME);
  }

  readonly #thaw = (): void => {
    const frozen = this.#frozen;
    this.#frozen = [];
    for (const send of frozen) send();
  };

  #send(message: object, attachment?: Uint8Array): void {
    if (this.#agent.isQuiesced) this.#frozen.push(() => this.#sendNow(message, attachment));
    else this.#sendNow(message, attachment);
  }

  #sendNow(message: object, attachment?: Uint8Array): void {
    for (const piece of encodeFrame(message, attachment)) this.#channel.send(piece);
  }
}

function rpcError({ code, reason, message, hint, details }: SandboxError): object {
  return { code: code === "invalid_argument" ? -32602 : -32000, message, data: { code, reason, hint, details } };
}
