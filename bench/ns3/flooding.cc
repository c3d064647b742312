// The work of bench/simulator.py in ns-3: nodes that move and flood over 802.11b in ad hoc mode.
//
// Prints one line: CPU seconds of the run, transmissions by the nodes, copies that they received. They move as in our
// run, which is exported as a file of ns-2. The radio is that of docs/model.md as near as ns-3 has it: two-ray ground
// (d^-4 from 101 m on), a frame is received up to `range` metres and sensed up to 2.2 times that; frames capture at
// 10 dB; 2 Mb/s; frames have the same bytes.

#include <cmath>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

using namespace ns3;

namespace {

constexpr double HEIGHT = 1.0;      // of the antennas, m: two-ray ground begins at 4 pi h^2 / wavelength = 101 m
constexpr double POWER = 16.0206;   // dBm
constexpr uint32_t IP_AND_UDP = 28; // bytes; MAC, FCS and LLC are ns-3's own

double ReceivedAt(double metres) { return POWER + 40 * std::log10(HEIGHT / metres); }

struct Label : public Header {
    uint32_t origin = 0, number = 0;
    static TypeId GetTypeId() {
        static TypeId id = TypeId("roamcast::Label").SetParent<Header>().AddConstructor<Label>();
        return id;
    }
    TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    uint32_t GetSerializedSize() const override { return 8; }
    void Serialize(Buffer::Iterator at) const override { at.WriteHtonU32(origin); at.WriteHtonU32(number); }
    uint32_t Deserialize(Buffer::Iterator at) override { origin = at.ReadNtohU32(); number = at.ReadNtohU32(); return 8; }
    void Print(std::ostream &out) const override { out << origin << '/' << number; }
};

uint64_t g_sent = 0, g_received = 0;

class Flooder {
  public:
    Flooder(Ptr<NetDevice> device, uint32_t number, double jitter) : m_device(device), m_number(number) {
        m_jitter->SetAttribute("Max", DoubleValue(jitter));
        device->SetReceiveCallback(MakeCallback(&Flooder::Receive, this));
    }

    // A message of `size` bytes every `interval` seconds; flooded, or for the neighbours alone.
    void Make(double interval, uint32_t size, bool flood) {
        Simulator::Schedule(Seconds(m_uniform->GetValue(0, interval)), &Flooder::Due, this, interval, size, flood);
    }

  private:
    static constexpr uint16_t FLOOD = 0x88b5, BEACON = 0x88b6; // types that IEEE keeps for experiments

    void Due(double interval, uint32_t size, bool flood) {
        Simulator::Schedule(Seconds(interval), &Flooder::Due, this, interval, size, flood);
        Label label;
        label.origin = m_number;
        label.number = ++m_made;
        if (flood) m_seen[m_number] = m_made;
        Send(label, size, flood ? FLOOD : BEACON);
    }

    void Send(Label label, uint32_t size, uint16_t type) {
        Ptr<Packet> packet = Create<Packet>(size + IP_AND_UDP - label.GetSerializedSize());
        packet->AddHeader(label);
        m_device->Send(packet, m_device->GetBroadcast(), type);
    }

    bool Receive(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t type, const Address &) {
        ++g_received;
        if (type != FLOOD) return true;
        Label label;
        packet->PeekHeader(label);
        uint32_t &highest = m_seen[label.origin];
        if (label.number > highest) {
            highest = label.number;
            Simulator::Schedule(Seconds(m_jitter->GetValue()), &Flooder::Send, this, label,
                                packet->GetSize() - IP_AND_UDP, type);
        }
        return true;
    }

    Ptr<NetDevice> m_device;
    uint32_t m_number, m_made = 0;
    std::map<uint32_t, uint32_t> m_seen;
    Ptr<UniformRandomVariable> m_uniform = CreateObject<UniformRandomVariable>();
    Ptr<UniformRandomVariable> m_jitter = CreateObject<UniformRandomVariable>();
};

void CountTransmission(Ptr<const Packet>, double) { ++g_sent; }

} // namespace

int main(int argc, char **argv) {
    uint32_t nodes = 75, publishers = 75, size = 256, beaconSize = 60;
    double rate = 0.5, beacons = 0, duration = 10, range = 150, jitter = 0.01;
    std::string movement;
    CommandLine command;
    command.AddValue("nodes", "", nodes);
    command.AddValue("movement", "file of ns-2", movement);
    command.AddValue("publishers", "nodes that flood", publishers);
    command.AddValue("size", "bytes of a flooded message", size);
    command.AddValue("beacon-size", "bytes of a beacon", beaconSize);
    command.AddValue("rate", "floods of a publisher per second", rate);
    command.AddValue("beacons", "beacons of a node per second", beacons);
    command.AddValue("duration", "s", duration);
    command.AddValue("range", "m", range);
    command.AddValue("jitter", "longest wait before passing on, s", jitter);
    command.Parse(argc, argv);

    NodeContainer all;
    all.Create(nodes);

    Ns2MobilityHelper(movement).Install(all.Begin(), all.End());

    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::TwoRayGroundPropagationLossModel", "Frequency", DoubleValue(2.412e9),
                               "HeightAboveZ", DoubleValue(HEIGHT), "MinDistance", DoubleValue(0.5));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.Set("TxPowerStart", DoubleValue(POWER));
    phy.Set("TxPowerEnd", DoubleValue(POWER));
    const double sensed = ReceivedAt(2.2 * range);
    phy.Set("RxSensitivity", DoubleValue(sensed)); // below this the channel drops a frame: nobody notices it
    phy.Set("CcaEdThreshold", DoubleValue(sensed));
    phy.Set("CcaSensitivity", DoubleValue(sensed));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "MinimumRssi",
                                  DoubleValue(ReceivedAt(range)));
    phy.SetFrameCaptureModel("ns3::SimpleFrameCaptureModel", "Margin", DoubleValue(10));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("DsssRate2Mbps"),
                                 "NonUnicastMode", StringValue("DsssRate2Mbps"));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    NetDeviceContainer devices = wifi.Install(phy, mac, all);

    std::vector<Flooder *> flooders;
    for (uint32_t i = 0; i < nodes; ++i) {
        Ptr<WifiNetDevice> device = DynamicCast<WifiNetDevice>(devices.Get(i));
        device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&CountTransmission));
        flooders.push_back(new Flooder(device, i, jitter));
        if (i < publishers) flooders.back()->Make(1 / rate, size, true);
        if (beacons > 0) flooders.back()->Make(1 / beacons, beaconSize, false);
    }

    Simulator::Stop(Seconds(duration));
    const std::clock_t began = std::clock();
    Simulator::Run();
    std::cout << double(std::clock() - began) / CLOCKS_PER_SEC << ' ' << g_sent << ' ' << g_received << std::endl;
    return 0;
}
