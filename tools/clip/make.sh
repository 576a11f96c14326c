#!/usr/bin/env bash
# Makes clip.flv, the stream of `make demo`: ffmpeg's test picture with a clock and
# a frame counter, and a small tune. Needs ffmpeg with libx264 and a DejaVu font.
#
# It loops without a seam. Eight seconds are 240 frames at 30 fps and 375 AAC frames
# of 1024 samples at 48 kHz, both exactly, so neither track runs away from the other.
# The tune is encoded three times over and the middle is taken: there each AAC frame,
# the first one too, overlaps with the frame that will precede it in the loop.
set -euo pipefail
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

font=$(fc-match -f '%{file}' 'DejaVu Sans Mono:bold')

# Sixteen half-second notes, in semitones above C4, each dying away before the next.
semitone=0
i=0
for n in 0 7 12 16 19 16 12 7 -3 4 9 12 16 12 9 4; do
	semitone="$semitone+eq(floor(mod(2*t\,16))\,$i)*($n)"
	i=$((i + 1))
done
note="mod(t\,0.5)"
tone="261.63*pow(2\,($semitone)/12)"
tune="0.28*exp(-6*$note)*min(1\,$note*200)*min(1\,(0.5-$note)*100)*(sin(2*PI*$tone*$note)+0.3*sin(4*PI*$tone*$note))"

ffmpeg -v error -y -f lavfi -i "aevalsrc=exprs=$tune:s=48000:d=24" \
	-map_metadata -1 -c:a aac -b:a 64k -ac 1 -fflags +bitexact "$tmp/tune.nut"

text="fontfile=$font:fontcolor=white:box=1:boxcolor=black@0.72:boxborderw=8"
ffmpeg -v error -y \
	-f lavfi -i "testsrc2=size=640x360:rate=30:duration=8" \
	-i "$tmp/tune.nut" -map 0:v -map 1:a -map_metadata -1 \
	-vf "hue=s=0.65:b=-0.8,drawtext=$text:fontsize=44:x=(w-text_w)/2:y=h-132:text='%{pts\:hms}',drawtext=$text:fontsize=20:x=(w-text_w)/2:y=h-64:text='MILLRACE  frame %{eif\:n\:d\:3} of 240',format=yuv420p" \
	-c:v libx264 -profile:v main -preset veryslow -crf 30 -g 60 -keyint_min 60 -sc_threshold 0 -bf 0 -threads 1 \
	-c:a copy -bsf:a 'noise=drop=lt(n\,376)+gte(n\,751),setts=ts=round(N*64/3)' \
	-flvflags no_duration_filesize+no_sequence_end -fflags +bitexact clip.flv

ls -l clip.flv
