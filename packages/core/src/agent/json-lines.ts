import type { z } from "zod";
import type { AgentClient } from "./agent-client.ts";
import { invalidAnswer } from "./agent-error.ts";
import type { InboundStream } from "./inbound-stream.ts";

export interface JsonLinesOptions<S extends z.ZodType> {
  readonly client: AgentClient;
  readonly method: string;
  readonly schema: S;
  /** What one line costs this program, in the units of the channel's work budget. */
  readonly unitsPerLine: number;
}

/**
 * The checked lines of a stream of JSON lines; a line is never split between two chunks. They count towards the channel's
 * work budget, because one chunk can hold thousands.
 */
export async function* jsonLines<S extends z.ZodType>(
  stream: InboundStream,
  { client, method, schema, unitsPerLine }: JsonLinesOptions<S>,
): AsyncGenerator<z.output<S>, void, undefined> {
  const decoder = new TextDecoder();
  for await (const { bytes } of stream) {
    for (const line of decoder.decode(bytes).split("\n")) {
      if (line === "") continue;
      const parsed = schema.safeParse(parseJson(line));
      if (!parsed.success) throw invalidAnswer(method, "a line has the wrong shape");
      yield parsed.data;
      await client.work(unitsPerLine);
    }
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
