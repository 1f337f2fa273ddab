import { writeFileSync } from 'node:fs'
import { describeApi } from '../handlers/openapi/document.js'
import { ROUTE_GROUPS } from '../handlers/routes.js'
import { packageVersion } from '../package-file.js'
import { configJsonSchema } from './schema.js'

writeFileSync('config.schema.json', configJsonSchema())
const description = describeApi(ROUTE_GROUPS, packageVersion())
writeFileSync('openapi.json', `${JSON.stringify(description, null, 2)}\n`)
