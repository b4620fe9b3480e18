import { type Content, errorBodySchema, type OperationId, type Route, routes } from "@sandpiper/protocol";
import type { z } from "zod";
import { JsonSchemas } from "./json-schemas.ts";

export type OpenApiDocument = ReturnType<typeof openApiDocument>;
export type OpenApiOperation = ReturnType<typeof operationOf>;

/** Request headers of single operations. */
const headersOf: Partial<Record<OperationId, readonly string[]>> = {
  createSandbox: ["Idempotency-Key"],
  readFile: ["Range"],
  listEvents: ["Last-Event-ID"],
};

const accessTexts = {
  anyone: "Needs no credential.",
  sandbox: "Needs a key of the sandbox's tenant, or the sandbox's own token.",
  read: "Needs a key with the scope read, sandboxes or admin.",
  sandboxes: "Needs a key with the scope sandboxes or admin.",
  admin: "Needs a key with the scope admin.",
  metrics: "Needs a key with the scope metrics or admin.",
} as const satisfies Record<Route["access"], string>;

/** Describes the REST interface with the schemas that check its requests. */
export function openApiDocument(version: string) {
  const schemas = new JsonSchemas();
  const error = { "application/json": { schema: schemas.of(errorBodySchema) } };
  const paths: Record<string, Record<string, OpenApiOperation>> = {};
  for (const [id, route] of Object.entries(routes) as [OperationId, Route][]) {
    paths[route.path] = {
      ...paths[route.path],
      [route.method.toLowerCase()]: operationOf(id, route, { schemas, error }),
    };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Sandpiper", version, description: "Run untrusted code in sandboxes that keep their state." },
    paths,
    components: {
      schemas: schemas.components,
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "An API key, or a sandbox's token." } },
    },
  };
}

function operationOf(id: OperationId, route: Route, { schemas, error }: { schemas: JsonSchemas; error: object }) {
  const { path, access, body, answer } = route;
  return {
    operationId: id,
    summary: route.summary,
    description: accessTexts[access],
    tags: [tagOf(path)],
    security: access === "anyone" ? [] : [{ bearer: [] }],
    parameters: parametersOf(id, route, schemas),
    ...(body && { requestBody: { required: isRequired(body), content: contentOf(body, schemas) } }),
    responses: {
      [route.status]: { description: "Success.", ...(answer && { content: contentOf(answer, schemas) }) },
      default: { description: "Failure. The code tells the caller what to do next.", content: error },
    },
  };
}

/** A missing JSON body counts as an empty object. */
function isRequired(body: Content): boolean {
  return body.kind !== "json" || !body.schema.safeParse({}).success;
}

function tagOf(path: string): string {
  const [, first = "", second = "", , fourth] = path.split("/");
  return first === "v1" ? (fourth ?? second) : "node";
}

function parametersOf(id: OperationId, route: Route, schemas: JsonSchemas) {
  const text = { type: "string" };
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  return [
    ...inPath.map((name) => ({ name, in: "path", required: true, schema: text })),
    ...(route.query === undefined ? [] : queryParameters(route.query, schemas)),
    ...(headersOf[id] ?? []).map((name) => ({ name, in: "header", required: false, schema: text })),
  ];
}

function queryParameters(query: z.ZodObject, schemas: JsonSchemas) {
  const { properties = {}, required = [] } = schemas.of(query) as {
    properties?: Record<string, Record<string, unknown>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

function contentOf(content: Content, schemas: JsonSchemas): Record<string, object> {
  switch (content.kind) {
    case "json":
      return { "application/json": { schema: schemas.of(content.schema) } };
    case "events":
      return { "text/event-stream": { schema: schemas.of(content.schema) } };
    case "text":
      return { "text/plain": { schema: { type: "string" } } };
    case "bytes":
      return { "application/octet-stream": {} };
  }
}
