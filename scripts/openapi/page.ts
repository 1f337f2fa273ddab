/* The API description as a page: plain HTML that needs no script and nothing from elsewhere. */

import type { ApiDocument, JsonSchema, Operation, Response } from './api-document.js'

/** A change of it also changes `STYLE_SOURCE` in `src/handlers/mount.ts`, which allows it. */
const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere }
code, pre { font: 0.9em/1.5 ui-monospace, monospace }
pre { overflow-x: auto; padding: 0.5rem; border: 1px solid #8884; border-radius: 4px }
details { border-top: 1px solid #8884; padding: 0.4rem 0 }
summary { cursor: pointer }
summary > code { font-weight: bold }
h2 { margin-top: 2.5rem }
h3 { margin: 0.8rem 0 0.2rem; font-size: 1rem }
ul { padding-left: 1.2rem; margin: 0.2rem 0 }
nav a { margin-right: 0.8rem }
`

/** Text that needs no escaping. */
interface Html {
  readonly html: string
}

type Value = string | number | Html | null | readonly Value[]

/** Escapes every value that is not HTML already. */
function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return { html: parts.map((part, index) => `${part}${htmlOf(values[index] ?? null)}`).join('') }
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function htmlOf(value: Value): string {
  if (value === null) return ''
  if (typeof value !== 'object') return String(value).replaceAll(/[&<>"']/g, (one) => ESCAPES[one] ?? '')
  return 'html' in value ? value.html : value.map(htmlOf).join('')
}

export function renderPage(document: ApiDocument): string {
  const { info, tags, paths, webhooks, components } = document
  const operations = Object.entries({ ...paths, ...webhooks }).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${info.title} API</title>
<style>${{ html: STYLE }}</style>
</head>
<body>
<h1>${info.title} API ${info.version}</h1>
${info.description.split('\n\n').map((paragraph) => html`<p>${prose(paragraph)}</p>`)}
<p>For generators: <a href="openapi.json">openapi.json</a></p>
<nav>${[...tags.map(({ name }) => name), 'Types'].map((name) => html`<a href="#${name}">${name}</a>`)}</nav>
${tags.map(
  ({ name, description }) => html`<section id="${name}"><h2>${name}</h2><p>${prose(description)}</p>
${operations
  .filter(({ operation }) => operation.tags.includes(name))
  .map(({ path, method, operation }) =>
    operationHtml(path, method, operation, components.responses),
  )}</section>
`,
)}<section id="Types"><h2>Types</h2>
${Object.entries(components.schemas).map(
  ([name, schema]) => html`<details><summary><code>${name}</code></summary>
<div id="type-${name}">${typeHtml(schema)}${fieldsHtml(schema)}</div></details>
`,
)}</section>
</body>
</html>
`
  return page.html
}

/** Text with `code` in it. */
function prose(text: string): readonly Html[] {
  return text.split('`').map((part, index) => (index % 2 === 0 ? html`${part}` : html`<code>${part}</code>`))
}

function operationHtml(
  path: string,
  method: string,
  { operationId, summary, description, parameters, requestBody, responses }: Operation,
  shared: ApiDocument['components']['responses'],
): Html {
  const answers = Object.entries(responses).map(([status, one]) => {
    const answer = '$ref' in one ? shared[one.$ref.slice(one.$ref.lastIndexOf('/') + 1)] : one
    return answer === undefined ? null : answerHtml(status, answer, '$ref' in one)
  })
  return html`<details><summary><code>${method.toUpperCase()} ${path}</code> ${prose(summary)}</summary>
<p id="${operationId}">${prose(description)} Operation <code>${operationId}</code>.</p>
${parameters.length === 0 ? null : html`<h3>Parameters</h3>`}<ul>${parameters.map(
    ({ name, in: place, required, description: meaning, schema }) =>
      html`<li><code>${name}</code> (${place}${required ? ', required' : ''}) ${typeHtml(schema)}: ${prose(meaning)}</li>`,
  )}</ul>
${requestBody === undefined ? null : html`<h3>Body${requestBody.required ? '' : ' (may be empty)'}</h3>${contentHtml(requestBody.content)}`}
<h3>Answers</h3><ul>${answers}</ul></details>
`
}

function answerHtml(
  status: string,
  { description, headers, content = {} }: Response,
  isFailure: boolean,
): Html {
  const names = Object.keys(headers ?? {})
  const sent = names.length === 0 ? '' : ` (with ${names.join(', ')})`
  const heading = html`<b>${status}</b> ${prose(description)}${sent}`
  return html`<li>${heading}${isFailure ? null : contentHtml(content)}</li>`
}

function contentHtml(content: NonNullable<Response['content']>): readonly Html[] {
  return Object.entries(content).map(
    ([
      type,
      { schema, example },
    ]) => html`<div><code>${type}</code> ${typeHtml(schema)}${fieldsHtml(schema)}</div>
${example === undefined ? null : html`<pre>${JSON.stringify(example, null, 2)}</pre>`}`,
  )
}

/** A type in one line, without its fields. */
function typeHtml(schema: JsonSchema): Html {
  const {
    $ref,
    const: only,
    enum: values,
    anyOf,
    oneOf,
    allOf,
    items,
    type,
    format,
    minimum,
    maximum,
  } = schema
  const joined = (types: readonly JsonSchema[], by: string): Html =>
    html`${types.map((one, index) => html`${index === 0 ? '' : by}${typeHtml(one)}`)}`
  if ($ref !== undefined) {
    const name = $ref.slice($ref.lastIndexOf('/') + 1)
    return html`<a href="#type-${name}">${name}</a>`
  }
  const literals = values ?? (only === undefined ? [] : [only])
  if (literals.length > 0)
    return html`${literals.map((value, index) => html`${index === 0 ? '' : ' | '}<code>${JSON.stringify(value)}</code>`)}`
  if (allOf !== undefined) return joined(allOf, ' & ')
  const alternatives = anyOf ?? oneOf
  if (alternatives !== undefined) return joined(alternatives, ' | ')
  if (items !== undefined) return html`list of ${typeHtml(items)}`
  const named = type === undefined ? 'anything' : [type].flat().join(' | ')
  const bounds = maximum === undefined ? '' : ` from ${minimum ?? 0} to ${maximum}`
  const fallback = schema.default === undefined ? '' : `, default ${JSON.stringify(schema.default)}`
  return html`${format ?? named}${bounds}${fallback}`
}

/** The fields of all objects in a type, those of named types excepted. */
function fieldsHtml(schema: JsonSchema): Html | null {
  const { properties, required = [], items, additionalProperties, anyOf, oneOf, allOf } = schema
  const inner = [
    ...(items === undefined ? [] : [items]),
    ...(typeof additionalProperties === 'object' ? [additionalProperties] : []),
    ...(anyOf ?? oneOf ?? allOf ?? []),
  ]
  return html`${inner.map(fieldsHtml)}${
    properties === undefined
      ? null
      : html`<ul>${Object.entries(properties).map(
          ([name, one]) =>
            html`<li><code>${name}</code>${required.includes(name) ? '' : ' (optional)'} ${typeHtml(one)}${fieldsHtml(one)}</li>`,
        )}</ul>`
  }`
}
