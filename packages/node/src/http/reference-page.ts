import type { OpenApiDocument, OpenApiOperation } from "./openapi.ts";

const STYLE = `
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
  h2 { margin-top: 2.5rem; border-bottom: 1px solid #ddd; text-transform: capitalize; }
  article { margin: 1.2rem 0; } h3 { margin: 0; font: 600 15px ui-monospace, monospace; }
  .method { display: inline-block; min-width: 4.5rem; color: #0a5; } p { margin: .2rem 0; }
  pre { background: #f6f6f6; padding: .6rem; overflow: auto; font-size: 12.5px; } code { font-size: 13px; }
  summary { cursor: pointer; color: #555; } nav { display: flex; flex-wrap: wrap; gap: 0 1rem; }
  @media (prefers-color-scheme: dark) { body { background: #16181c; color: #ddd; } pre { background: #22252b; }
    h2 { border-color: #333; } summary { color: #aaa; } a { color: #7bf; } }`;

/** Renders the OpenAPI document as one self-contained page. */
export function referencePage(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const tags = [...new Set(operations.map(({ operation }) => operation.tags[0] ?? "node"))];
  const sections = tags.map((tag) => {
    const own = operations.filter(({ operation }) => operation.tags[0] === tag);
    return `<section id="${escaped(tag)}"><h2>${escaped(tag)}</h2>${own.map(article).join("")}</section>`;
  });
  const { title, version, description } = document.info;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escaped(title)} ${escaped(version)}</title><style>${STYLE}</style></head><body>
<h1>${escaped(title)} <small>${escaped(version)}</small></h1><p>${escaped(description)}</p>
<p>Send <code>Authorization: Bearer KEY</code> with every request except <code>GET /health</code>
and the documents: this page, and <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>
<nav>${[...tags, "schemas"].map((tag) => `<a href="#${escaped(tag)}">${escaped(tag)}</a>`).join("")}</nav>
${sections.join("\n")}
<section id="schemas"><h2>schemas</h2>${Object.entries(document.components.schemas).map(schemaOf).join("")}</section>
</body></html>
`;
}

function article({ path, method, operation }: { path: string; method: string; operation: OpenApiOperation }): string {
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const rows = parameters.map(
    ({ name, in: where, required, schema }) =>
      `<li><code>${escaped(name)}</code> in ${where}${required ? ", required" : ""}: <code>${json(schema)}</code></li>`,
  );
  return `<article id="${escaped(operationId)}"><h3><span class="method">${method}</span> ${escaped(path)}</h3>
<p>${escaped(summary)}. ${escaped(description)}</p>${rows.length > 0 ? `<ul>${rows.join("")}</ul>` : ""}
${requestBody === undefined ? "" : details("Body", requestBody.content)}${details("Answers", responses)}</article>`;
}

function schemaOf([name, schema]: [string, object]): string {
  return `<article id="schema-${escaped(name)}">${details(name, schema)}</article>`;
}

function details(title: string, value: object): string {
  return `<details><summary>${escaped(title)}</summary><pre>${json(value, 2)}</pre></details>`;
}

function json(value: object, indent?: number): string {
  return escaped(JSON.stringify(value, null, indent));
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
