import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { describe, expect, it } from 'vitest'
import type { ApiDocument } from '../../scripts/openapi/api-document.js'
import { describeApi } from '../../scripts/openapi/document.js'
import { renderPage } from '../../scripts/openapi/page.js'
import { ROUTE_GROUPS, ROUTES } from '../../src/handlers/routes.js'
import { packageVersion } from '../../src/package-file.js'
import { ROOT } from '../world.js'
import { openFront } from './daemon-front.js'

const FILE = readFileSync(join(ROOT, 'openapi.json'), 'utf8')
const DOCUMENT = JSON.parse(FILE) as ApiDocument
const OPERATIONS = Object.values(DOCUMENT.paths).flatMap((methods) => Object.values(methods))

describe('openapi.json', () => {
  it('is what the table of routes says: `npm run schema` writes it', () => {
    expect(DOCUMENT).toEqual(describeApi(ROUTE_GROUPS, packageVersion()))
  })

  it('passes a linter, examples included', async () => {
    // Of two paths that match, the earlier serves: no product is called `features`.
    const rules = { 'no-invalid-media-type-examples': 'error', 'no-ambiguous-paths': 'off' } as const
    const config = await createConfig({ extends: ['recommended-strict'], rules })
    const problems = await lintFromString({ source: FILE, config })
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
      [],
    )
  })

  it('has every route, each under its own name, and says what every parameter means', () => {
    const names = OPERATIONS.map(({ operationId }) => operationId)
    expect(names.toSorted()).toEqual(ROUTES.map(({ operationId }) => operationId).toSorted())
    expect(new Set(names).size).toBe(names.length)
    const parameters = OPERATIONS.flatMap((operation) => operation.parameters)
    expect(parameters.filter(({ description }) => description === '')).toEqual([])
  })

  it('is served to anybody', async () => {
    const { url } = await openFront()
    const answer = await fetch(`${url}/openapi.json`)
    expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
      200,
      'application/json',
      FILE,
    ])
  })
})

describe('the page', () => {
  it('is what openapi.json says: `npm run schema` writes it', () => {
    expect(readFileSync(join(ROOT, 'openapi.html'), 'utf8')).toBe(renderPage(DOCUMENT))
  })

  it('is served to anybody, with a policy that allows its style alone', async () => {
    const { url } = await openFront()
    const answer = await fetch(`${url}/docs`)
    const page = await answer.text()
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const [, style = ''] = /<style>([^<]*)<\/style>/.exec(page) ?? []
    const hash = createHash('sha256').update(style).digest('base64')
    expect(answer.headers.get('content-security-policy')).toBe(
      `default-src 'none';style-src 'sha256-${hash}';base-uri 'none';form-action 'none';frame-ancestors 'none'`,
    )
    expect(page).not.toMatch(/<script|\son\w+=|https?:|style="/)
    for (const { path } of ROUTES) expect(page).toContain(path.replaceAll(/:(\w+)/g, '{$1}'))
    for (const [, target] of page.matchAll(/href="#([^"]+)"/g)) expect(page).toContain(`id="${target}"`)
  })

  it('escapes whatever the description holds', () => {
    const odd = `<img src=x onerror="alert('&')">`
    const page = renderPage(
      JSON.parse(FILE.replaceAll('Environment', () => JSON.stringify(odd).slice(1, -1))),
    )
    expect(page).not.toContain('<img')
    expect(page).toContain('&lt;img src=x onerror=&quot;alert(&#39;&amp;&#39;)&quot;&gt;')
  })
})
