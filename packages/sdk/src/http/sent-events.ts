/** One event of a stream of server-sent events. */
export interface SentEvent {
  readonly kind: string;
  /** Undefined if the event has none. */
  readonly id: number | undefined;
  readonly data: unknown;
}

/** Reads events whose data is JSON and skips comments, which only keep the connection alive. */
export async function* sentEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<SentEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      text += decoder.decode(piece.value, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const [, kind, data] = /^event: (.*)\ndata: (.*)$/m.exec(block) ?? [];
        const [, id] = /^id: (\d+)$/m.exec(block) ?? [];
        if (kind === undefined || data === undefined) continue;
        yield { kind, id: id === undefined ? undefined : Number(id), data: JSON.parse(data) };
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
