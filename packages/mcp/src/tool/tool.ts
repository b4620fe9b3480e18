import type { ContentBlock, ToolAnnotations } from "@modelcontextprotocol/server";
import type { z } from "zod";
import type { McpSession } from "../session/mcp-session.ts";

/** One call of a tool, as the tool sees it. */
export interface ToolCall {
  readonly session: McpSession;
  /** Aborted when the client cancels the call, or is gone. */
  readonly signal: AbortSignal;
  /** Tells the client how far it is, where it asked to be told. */
  readonly progress: (message: string) => void;
}

/** What a model reads, and the same for programs. */
interface ToolAnswer<Output> {
  readonly text: string;
  /** What a client shows beside the text, such as a picture. */
  readonly blocks?: readonly ContentBlock[];
  readonly structured: Output;
}

export interface ToolDefinition<Input extends z.ZodObject, Output extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** All four are said: what is left out means the worst to a client. */
  readonly annotations: Required<Omit<ToolAnnotations, "title">>;
  readonly input: Input;
  readonly output: Output;
  readonly run: (input: z.infer<Input>, call: ToolCall) => Promise<ToolAnswer<z.infer<Output>>>;
}

/** A tool whose schemas say what it takes, checked before `run` is called. */
export type Tool = Omit<ToolDefinition<z.ZodObject, z.ZodObject>, "run"> & {
  readonly run: (input: never, call: ToolCall) => Promise<ToolAnswer<Record<string, unknown>>>;
};

export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool {
  return Object.freeze(definition);
}
