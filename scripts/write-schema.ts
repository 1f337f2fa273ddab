import { writeFileSync } from 'node:fs'
import { configJsonSchema } from '../src/config/schema.js'
import { ROUTE_GROUPS } from '../src/handlers/routes.js'
import { packageVersion } from '../src/package-file.js'
import { describeApi } from './openapi/document.js'
import { renderPage } from './openapi/page.js'

writeFileSync('config.schema.json', configJsonSchema())
const description = describeApi(ROUTE_GROUPS, packageVersion())
writeFileSync('openapi.json', `${JSON.stringify(description, null, 2)}\n`)
writeFileSync('openapi.html', renderPage(description))
