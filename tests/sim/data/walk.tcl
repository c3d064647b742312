# two nodes, the second interrupted and then stopped
set god_ [God instance]
$node_(0) set X_ 10.0
$node_(0) set Y_ 20.0
$node_(0) set Z_ 0.000000000000
$node_(1) set X_ 0.0
$node_(1) set Y_ 0.0
$node_(1) set Z_ 0.000000000000
$god_ set-dist 0 1 1
$ns_ at 10.0 "$node_(0) setdest 40.0 60.0 5.0"
$ns_ at 4.0 "$node_(1) setdest 50.0 0.0 10.0"
$ns_ at 2.0 "$node_(1) setdest 100.0 0.0 10.0"
$ns_ at 5.5 "$god_ set-dist 0 1 2"
$ns_ at 6.0 "$node_(1) setdest 50.0 90.0 30.0"

$ns_ at 7.0 "$node_(1) setdest 0.0 0.0 0.0"
