import { LatchkeyError } from '../errors.js'
import type { ApiKeyFile } from './access-schema.js'
import { type JsonNode, parseJsonText } from './json-text.js'

/**
 * Adds a key to the text of the config file `path` and leaves every other character as it is.
 * Throws `usage` if the name is taken, `config_invalid` if there is no place for it.
 */
export function addApiKey(text: string, path: string, entry: ApiKeyFile): string {
  const { root, value } = parseJsonText(text, path)
  const api = member(root, 'api')
  const keys = api && member(api, 'keys')
  if (keyNames(value).includes(entry.name)) {
    throw new LatchkeyError('usage', `a key named ${JSON.stringify(entry.name)} exists already`)
  }
  if (keys) return insertLast(text, expectKind(keys, 'array', 'api.keys'), inline(entry))
  if (api) return insertLast(text, expectKind(api, 'object', 'api'), `"keys": [${inline(entry)}]`)
  return insertLast(text, expectKind(root, 'object', ''), `"api": { "keys": [${inline(entry)}] }`)
}

function keyNames(config: unknown): unknown[] {
  const keys = (config as { api?: { keys?: unknown } } | null)?.api?.keys
  return Array.isArray(keys) ? keys.map((key: { name?: unknown } | null) => key?.name) : []
}

/** The last member of that name: the one that `JSON.parse` keeps. */
function member(node: JsonNode, key: string): JsonNode | undefined {
  return node.members.findLast((candidate) => candidate.key === key)?.value
}

function expectKind(node: JsonNode, kind: 'array' | 'object', path: string): JsonNode {
  if (node.kind === kind) return node
  const message = `must be ${kind === 'array' ? 'a list' : 'an object'}`
  throw new LatchkeyError('config_invalid', 'the config file has no place for a key', {
    issues: [{ path, message }],
  })
}

/** Sets the new member apart from the last one by the same white space as that one is set apart. */
function insertLast(text: string, container: JsonNode, content: string): string {
  const last = container.members.at(-1)
  if (last === undefined) {
    return `${text.slice(0, container.start + 1)} ${content} ${text.slice(container.end - 1)}`
  }
  const [space] = /\s*$/.exec(text.slice(0, last.start)) ?? ['']
  return `${text.slice(0, last.value.end)},${space}${content}${text.slice(last.value.end)}`
}

function inline(entry: ApiKeyFile): string {
  const list = (items: readonly string[]) => `[${items.map((item) => JSON.stringify(item)).join(', ')}]`
  const { name, hash, scopes, environments } = entry
  return `{ "name": ${JSON.stringify(name)}, "hash": "${hash}", "scopes": ${list(scopes)}, "environments": ${list(environments)} }`
}
