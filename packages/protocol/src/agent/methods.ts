import type { z } from "zod";
import { fileMethods } from "./file.ts";
import { networkMethods } from "./network.ts";
import { processMethods } from "./process.ts";
import { systemMethods } from "./system.ts";

/** Every call that an agent answers. */
export const agentMethods = { ...systemMethods, ...processMethods, ...fileMethods, ...networkMethods } as const;

export type AgentMethod = keyof typeof agentMethods;
export type AgentParams<M extends AgentMethod> = z.input<(typeof agentMethods)[M]["params"]>;
export type AgentResult<M extends AgentMethod> = z.output<(typeof agentMethods)[M]["result"]>;
