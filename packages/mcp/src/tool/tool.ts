import type { ContentBlock, ToolAnnotations } from "@modelcontextprotocol/server";
import type { Sandbox } from "@sandpiper/sdk";
import { z } from "zod";
import type { McpSession } from "../session/mcp-session.ts";
import { sandboxIdInput, sandboxIdOutput } from "./fields.ts";

/** One call of a tool. */
export interface ToolCall {
  readonly session: McpSession;
  /** Aborted when the client cancels the call or disconnects. */
  readonly signal: AbortSignal;
  /** Sends a progress notification, if the client asked for them. */
  readonly progress: (message: string) => void;
}

/** The answer as text for a model, and as structured content for programs. */
interface ToolAnswer<Output> {
  readonly text: string;
  /** Further content for the client to show, such as an image. */
  readonly blocks?: readonly ContentBlock[];
  readonly structured: Output;
}

export interface ToolDefinition<Input extends z.ZodObject, Output extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** All four are required, because clients assume the worst for an omitted one. */
  readonly annotations: Required<Omit<ToolAnnotations, "title">>;
  readonly input: Input;
  readonly output: Output;
  readonly run: (input: z.infer<Input>, call: ToolCall) => Promise<ToolAnswer<z.infer<Output>>>;
}

/** A tool. Its input is checked against its schema before `run` is called. */
export type Tool = Omit<ToolDefinition<z.ZodObject, z.ZodObject>, "run"> & {
  readonly run: (input: never, call: ToolCall) => Promise<ToolAnswer<Record<string, unknown>>>;
};

export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool {
  return Object.freeze(definition);
}

type Fields<Shape extends z.ZodRawShape> = z.infer<z.ZodObject<Shape>>;

interface SandboxToolDefinition<Input extends z.ZodRawShape, Output extends z.ZodRawShape>
  extends Omit<Tool, "input" | "output" | "run"> {
  readonly input: Input;
  readonly output: Output;
  readonly run: (
    input: Fields<Input>,
    call: ToolCall & { readonly sandbox: Sandbox },
  ) => Promise<ToolAnswer<Fields<Output>>>;
}

/** Defines a tool that uses one sandbox, which its input may name and its answer names. */
export function defineSandboxTool<Input extends z.ZodRawShape, Output extends z.ZodRawShape>(
  definition: SandboxToolDefinition<Input, Output>,
): Tool {
  return Object.freeze({
    ...definition,
    input: z.object({ sandbox_id: sandboxIdInput, ...definition.input }),
    output: z.object({ sandbox_id: sandboxIdOutput, ...definition.output }),
    async run({ sandbox_id, ...input }: { readonly sandbox_id?: string }, call: ToolCall) {
      const sandbox = await call.session.sandbox(sandbox_id, call.signal);
      const { structured, ...answer } = await definition.run(input as Fields<Input>, { ...call, sandbox });
      return { ...answer, structured: { sandbox_id: sandbox.id, ...structured } };
    },
  });
}
