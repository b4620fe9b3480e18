import { SandboxError } from "@sandpiper/core";
import {
  type AgentMethod,
  agentMethods,
  type CallId,
  encodeFrame,
  type Frame,
  FrameDecoder,
  type FrameSink,
} from "@sandpiper/protocol";
import type { Handlers, MockAgent } from "./agent.ts";
import { fileHandlers } from "./agent-files.ts";
import { networkHandlers } from "./agent-network.ts";
import { portHandlers } from "./agent-ports.ts";
import { processHandlers } from "./agent-processes.ts";
import { systemHandlers } from "./agent-system.ts";
import { MockCall, type MockRequest } from "./call.ts";
import type { MockChannel, MockPeer } from "./channel.ts";
import type { MockFaults } from "./faults.ts";

const handlers: Handlers = {
  ...systemHandlers,
  ...processHandlers,
  ...fileHandlers,
  ...networkHandlers,
  ...portHandlers,
};
const ANSWERED_WHILE_QUIESCED: readonly string[] = ["ping", "hello", "system.quiesce", "system.thaw"];

const TORN_FRAME = new TextEncoder().encode('{"jsonrpc":"2.0","method":"stream.data","params":{},"bytes":3}\nab \n');

interface Notification {
  readonly call: CallId;
  readonly bytes: number;
}

/** One caller on one channel: its calls, and the faults of their answers. */
export class MockSession implements MockPeer, FrameSink {
  readonly #agent: MockAgent;
  readonly #channel: MockChannel;
  readonly #faults: MockFaults;
  readonly #decoder = new FrameDecoder(this);
  readonly #calls = new Map<CallId, MockCall>();
  #heldAnswers: (() => void)[] = [];
  /** Messages that wait until the agent is thawed. */
  #frozen: (() => void)[] = [];

  constructor(agent: MockAgent, channel: MockChannel, faults: MockFaults) {
    this.#agent = agent;
    this.#channel = channel;
    this.#faults = faults;
    channel.connectPeer(this);
    agent.thawListeners.add(this.#thaw);
    if (faults.staleBytes !== undefined) channel.send(faults.staleBytes);
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

  frame({ message, attachment = new Uint8Array(0) }: Frame): void {
    const { id, method, params = {} } = message as Partial<MockRequest>;
    if (id !== undefined) this.#begin({ id, method: String(method), params, attachment });
    else this.#notified(String(method), params as Notification, attachment);
  }

  #notified(method: string, { call: id, bytes }: Notification, attachment: Uint8Array): void {
    const call = this.#calls.get(id);
    if (method === "cancel") call?.cancel();
    else if (method === "stream.credit") call?.grant(bytes);
    else if (method === "stream.end") call?.ended();
    else if (method === "stream.data") call?.receive(attachment);
  }

  #begin(request: MockRequest): void {
    const call = new MockCall(request, (message, attachment) => this.#send(message, attachment));
    const { id, method } = request;
    this.#calls.set(id, call);
    // A refusal is sent at once, too.
    const isUrgent = this.#agent.isQuiesced || ANSWERED_WHILE_QUIESCED.includes(method);
    const answer = (outcome: object) => this.#answer(request, { jsonrpc: "2.0", id, ...outcome }, isUrgent);
    this.#run(call).then(
      (result) => answer({ result }),
      (thrown) => answer({ error: rpcError(SandboxError.from(thrown)) }),
    );
  }

  async #run(call: MockCall): Promise<object> {
    const method = call.request.method as AgentMethod;
    const handler = Object.hasOwn(handlers, method) ? handlers[method] : undefined;
    if (handler === undefined) throw new SandboxError("unknown_method", { message: `method ${method} not found` });
    const parsed = agentMethods[method].params.safeParse(call.request.params);
    if (!parsed.success) {
      const message = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ");
      throw new SandboxError("bad_params", { message });
    }
    if (method === "hello") {
      for (const other of this.#calls.values()) if (other !== call) other.cancel();
      this.#frozen = [];
    }
    if (this.#agent.isQuiesced && !ANSWERED_WHILE_QUIESCED.includes(method)) {
      throw new SandboxError("quiesced", { message: `${method} was refused: the sandbox is quiesced` });
    }
    return handler(this.#agent, parsed.data as never, call);
  }

  #answer({ id, method }: MockRequest, message: object, isUrgent: boolean): void {
    this.#calls.delete(id);
    if (this.#faults.unanswered?.includes(method)) return;
    const send = isUrgent ? () => this.#sendNow(message) : () => this.#send(message);
    const delayMs = this.#faults.answerDelayMs?.(method) ?? 0;
    if (delayMs > 0) this.#agent.clock.schedule(delayMs, () => this.#sendAnswer(send));
    else this.#sendAnswer(send);
  }

  #sendAnswer(send: () => void): void {
    if (!this.#faults.isOrderReversed) {
      this.#disturb();
      send();
      return;
    }
    if (this.#heldAnswers.length === 0) {
      this.#agent.clock.schedule(0, () => {
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
