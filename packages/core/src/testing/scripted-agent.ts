import { encodeFrame, type Frame, FrameDecoder, PROTOCOL_GENERATION } from "@sandpiper/protocol";
import { FakeClock } from "@sandpiper/protocol/testing";
import { AgentClient, type AgentClientOptions } from "../agent/agent-client.ts";
import type { Channel, ChannelReceiver } from "../channel.ts";

type Message = Readonly<Record<string, unknown>>;

/** An agent, and a client after its hello. */
export async function connectedAgent() {
  const clock = new FakeClock();
  const agent = new ScriptedAgent();
  return { clock, agent, client: await agent.client({ clock }) };
}

/** The other end of a channel: it records the client's bytes and sends only what a test scripts. */
export class ScriptedAgent {
  readonly received: Frame[] = [];
  writes = 0;
  isClosed = false;
  /** Bytes before the first frame, such as resync padding. */
  faults = 0;
  /** The result of write(): the channel's back-pressure. */
  backPressure: Promise<void> | undefined;
  readonly channel: Channel;
  #receiver: ChannelReceiver | undefined;
  readonly #answerers = new Map<string, (frame: Frame) => void>();

  constructor() {
    const decoder = new FrameDecoder({ frame: (frame) => this.#take(frame), fault: () => this.faults++ });
    this.channel = {
      write: (pieces) => {
        this.writes++;
        for (const piece of pieces) decoder.push(piece);
        return this.backPressure;
      },
      open: (receiver) => {
        this.#receiver = receiver;
      },
      close: () => {
        this.isClosed = true;
      },
    };
    this.on("hello", ({ message }) =>
      this.answer(message, {
        generation: PROTOCOL_GENERATION,
        version: "0",
        boot_id: "b",
        epoch: 0,
        methods: [],
        languages: ["sh"],
        processes: [],
      }),
    );
    this.on("ping", ({ message }) => this.answer(message, { pong: true }));
  }

  /** A client after its hello. */
  async client(options: AgentClientOptions & { readonly needsResync?: boolean } = {}): Promise<AgentClient> {
    const { needsResync = false, ...clientOptions } = options;
    const client = await AgentClient.open({ channel: this.channel, needsResync }, clientOptions);
    this.received.length = 0;
    this.writes = 0;
    return client;
  }

  /** Runs in a later turn whenever this method or notification arrives. */
  on(method: string, reaction: (frame: Frame) => void): void {
    this.#answerers.set(method, reaction);
  }

  /** The requests and notifications of this name, in order of arrival. */
  sent(method: string): Message[] {
    return this.received.map(({ message }) => message).filter((message) => message["method"] === method);
  }

  answer(request: Message, result: object): void {
    this.say({ jsonrpc: "2.0", id: request["id"], result });
  }

  refuse(request: Message, error: object): void {
    this.say({ jsonrpc: "2.0", id: request["id"], error });
  }

  /** Refuses the request as agents do. */
  fail(request: Message, data: { readonly code: string; readonly reason: string }): void {
    this.refuse(request, { code: -32000, message: "?", data });
  }

  data(request: Message, bytes: Uint8Array, fields: object = {}): void {
    this.say({ jsonrpc: "2.0", method: "stream.data", params: { call: request["id"], ...fields } }, bytes);
  }

  credit(request: Message, bytes: number): void {
    this.say({ jsonrpc: "2.0", method: "stream.credit", params: { call: request["id"], bytes } });
  }

  say(message: object, attachment?: Uint8Array): void {
    for (const piece of encodeFrame(message, attachment)) this.raw(piece);
  }

  /** Returns a promise when the agent should wait before it sends more. */
  raw(bytes: Uint8Array): Promise<void> | undefined {
    return this.#receiver?.data(bytes);
  }

  /** Breaks the channel. */
  hangUp(cause?: Error): void {
    this.#receiver?.closed(cause);
  }

  #take(frame: Frame): void {
    this.received.push(frame);
    const answerer = this.#answerers.get(String(frame.message["method"]));
    if (answerer !== undefined) queueMicrotask(() => answerer(frame));
  }
}
