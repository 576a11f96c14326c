#!/usr/bin/env bash
# Fetches the player that the watch page embeds: the minified build of mpegts.js from
# the npm registry, with its licences, and checks that it is the file we reviewed.
# The version is pinned; raise it here, look at its changes, and run the browser test.
set -euo pipefail
cd "$(dirname "$0")"
version=1.8.2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
npm pack --silent --pack-destination "$tmp" "mpegts.js@$version" >/dev/null
tar -xzf "$tmp/mpegts.js-$version.tgz" -C "$tmp"
# The source map is not shipped, so the reference to it goes.
sed '/^\/\/# sourceMappingURL=/d' "$tmp/package/dist/mpegts.js" >mpegts.js
{
	echo "mpegts.js $version, https://github.com/xqq/mpegts.js, under the Apache License 2.0 below."
	echo "The build contains es6-promise:"
	cat "$tmp/package/dist/mpegts.js.LICENSE.txt"
	echo
	cat "$tmp/package/LICENSE"
} >mpegts.js.LICENSE
sha256sum --check mpegts.js.sha256
